variable "allow" {
  description = "The switches that policies may use. Every other switch is off, whatever a policy says. With an empty set Pitstop watches and changes nothing, and none of its accounts may change a TPU."
  type        = set(string)
  default     = []

  validation {
    condition     = length(setsubtract(var.allow, local.switches)) == 0
    error_message = "There is no switch ${join(", ", setsubtract(var.allow, local.switches))}, only ${join(", ", local.switches)}."
  }
}

variable "archive_directory" {
  description = "The folder with the functions' archives, as scripts/package writes it. The default is the repository's folder build."
  type        = string
  default     = null
}

variable "brake_per_project" {
  description = "The number of destructive calls that an hour may bring in a watched project."
  type        = number
  default     = 30

  validation {
    condition     = var.brake_per_project >= 1 && floor(var.brake_per_project) == var.brake_per_project
    error_message = "brake_per_project has to be a whole number, at least 1. To forbid destructive calls, leave recreate out of allow."
  }
}

variable "brake_per_zone" {
  description = "The number of destructive calls that an hour may bring in one zone."
  type        = number
  default     = 10

  validation {
    condition     = var.brake_per_zone >= 1 && floor(var.brake_per_zone) == var.brake_per_zone
    error_message = "brake_per_zone has to be a whole number, at least 1. To forbid destructive calls, leave recreate out of allow."
  }
}

variable "checkpoint_buckets" {
  description = "The buckets that hold checkpoint directories, without gs://. Pitstop verifies checkpoints there and writes leases and requests beside them. It can do neither for a TPU with a bucket that is not listed."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for b in var.checkpoint_buckets : can(regex("^[a-z0-9][a-z0-9._-]+[a-z0-9]$", b))])
    error_message = "checkpoint_buckets takes the names of buckets, without gs:// and without a path."
  }
}

variable "clusters" {
  description = "The clusters of GKE whose Jobs and JobSets on TPUs Pitstop watches, LOCATION/CLUSTER, or LOCATION/CLUSTER/NAMESPACE for one namespace. PROJECT: before it names another watched project than project_id. Pitstop reads them, and changes what the policies and the cluster let it. Each cluster also needs the roles that pitstop gke rbac prints. Without clusters there is no sink, grant or API for GKE."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for c in var.clusters : can(regex("^([a-z][a-z0-9-]{4,28}[a-z0-9]:)?[a-z]+-[a-z]+[0-9]+(-[a-z0-9]+)?/[a-z]([a-z0-9-]{0,38}[a-z0-9])?(/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$", c))])
    error_message = "clusters takes LOCATION/CLUSTER or LOCATION/CLUSTER/NAMESPACE, with PROJECT: before it for another project, such as us-east5/research or training-a:us-east5-b/research/train."
  }

  validation {
    condition     = alltrue([for c in var.clusters : contains(local.watched, length(split(":", c)) > 1 ? split(":", c)[0] : var.project_id)])
    error_message = "A cluster has to be in a watched project: ${join(", ", [for c in var.clusters : c if !contains(local.watched, length(split(":", c)) > 1 ? split(":", c)[0] : var.project_id)])} is not. Name it as PROJECT:LOCATION/CLUSTER, or add its project to watched_projects."
  }
}

variable "console" {
  description = "Who may open the console in a browser, after Google's own sign-in: viewers see everything that pitstop status and incident show, operators also approve, retry, cancel, pause and resume there. Each is a set of members, such as user:ada@example.com, group:on-call@example.com or domain:example.com, of the project's own organization; for others, and without an organization, the sign-in needs an OAuth client of your own. Without anybody there is no console."
  type        = map(set(string)) # of an object Terraform would drop a misspelt key before any validation
  default     = {}

  validation {
    condition     = length(setsubtract(keys(var.console), ["operators", "viewers"])) == 0
    error_message = "console has no ${join(", ", setsubtract(keys(var.console), ["operators", "viewers"]))}, only viewers and operators."
  }

  validation {
    condition     = alltrue([for members in values(var.console) : alltrue([for m in members : can(regex("^((user|group|serviceAccount):[^@ ]+@[^@ ]+|domain:[^@ ]+|principal(Set)?://[^ ]+)$", m))])])
    error_message = "console takes members: user:ADDRESS, group:ADDRESS, serviceAccount:ADDRESS, domain:NAME, or principal://... of a workforce pool. It is open to nobody else: not to all users, nor to everybody with a Google account."
  }
}

variable "controllers" {
  description = "Service accounts of controllers, whose calls are no owner's word: system:serviceaccount:NAMESPACE:NAME, or an e-mail address. Pitstop knows those of Kubernetes, GKE, JobSet and Kueue in their usual namespaces. Every other service account is taken for a tool of the owner: what it deletes is not brought back."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for c in var.controllers : can(regex("^(system:serviceaccount:[a-z0-9][a-z0-9-]*:[a-z0-9][a-z0-9.-]*|[a-z0-9-]+@[a-z0-9.-]+[.]gserviceaccount[.]com)$", c))])
    error_message = "controllers takes service accounts, system:serviceaccount:NAMESPACE:NAME or an e-mail address: ${join(", ", [for c in var.controllers : c if !can(regex("^(system:serviceaccount:[a-z0-9][a-z0-9-]*:[a-z0-9][a-z0-9.-]*|[a-z0-9-]+@[a-z0-9.-]+[.]gserviceaccount[.]com)$", c))])} is none. A person is no controller."
  }
}

variable "docker_repository" {
  description = "An existing Docker repository of Artifact Registry for the functions' images, projects/P/locations/R/repositories/N in their project and region. Without it Terraform makes one and destroys it with the deployment. That one keeps the last three images of each function, and all images younger than 30 days."
  type        = string
  default     = null

  validation {
    condition     = var.docker_repository == null || can(regex("^projects/${var.project_id}/locations/${var.region}/repositories/[a-z]([a-z0-9-]*[a-z0-9])?$", var.docker_repository))
    error_message = "docker_repository needs its full name, and it has to be in the functions' project and region: projects/${var.project_id}/locations/${var.region}/repositories/N. Cloud Functions accepts no other."
  }
}

variable "fine_grained_buckets" {
  description = "The buckets of checkpoint_buckets with fine-grained access control, which is to say without uniform bucket-level access. They take no condition in a grant, so checkpoint and recovery may write and delete every object in them. In other buckets they may only write leases and requests."
  type        = set(string)
  default     = []

  validation {
    condition     = length(setsubtract(var.fine_grained_buckets, var.checkpoint_buckets)) == 0
    error_message = "fine_grained_buckets names buckets of checkpoint_buckets: ${join(", ", setsubtract(var.fine_grained_buckets, var.checkpoint_buckets))} is not among them."
  }
}

variable "kms_grants" {
  description = "Whether Terraform grants the agents of Firestore, Pub/Sub and Cloud Storage the use of kms_key. It takes these grants away at a destroy or a change of key, and whatever is still under the key can then not be read. By default the key's owner grants before the first apply, with the commands in the README."
  type        = bool
  default     = false
}

variable "kms_key" {
  description = "The Cloud KMS key that encrypts databases, topics and the bucket of archives, projects/P/locations/R/keyRings/K/cryptoKeys/N in the functions' region. Without it Google's own keys do. A database keeps the key that it was made with."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key == null || can(regex("^projects/[^/]+/locations/${var.region}/keyRings/[^/]+/cryptoKeys/[^/]+$", var.kms_key))
    error_message = "kms_key needs its full name, and it has to be in the functions' region: projects/P/locations/${var.region}/keyRings/K/cryptoKeys/N. A bucket there accepts no other."
  }

  validation {
    condition     = var.kms_key == null || coalesce(var.ledger_location, var.region) == var.region
    error_message = "With kms_key the databases have to be in the functions' region: Firestore and Cloud Storage each accept only a key of their own location."
  }
}

variable "labels" {
  description = "Labels for every resource that can have labels. Terraform adds app=pitstop."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for key, value in var.labels : can(regex("^[\\p{Ll}\\p{Lo}][\\p{Ll}\\p{Lo}\\p{N}_-]{0,62}$", key)) && can(regex("^[\\p{Ll}\\p{Lo}\\p{N}_-]{0,63}$", value))])
    error_message = "labels takes keys and values of at most 63 small letters, digits, dashes and underscores. A key begins with a letter."
  }
}

variable "ledger_deletion_policy" {
  description = "The fate of the three databases at terraform destroy: ABANDON leaves them as they are, DELETE deletes them."
  type        = string
  default     = "ABANDON"

  validation {
    condition     = contains(["ABANDON", "DELETE"], var.ledger_deletion_policy)
    error_message = "ledger_deletion_policy is ABANDON or DELETE."
  }
}

variable "ledger_location" {
  description = "The location of the three databases, such as nam5. The default is the region of the functions. Only the first apply reads it, because a database cannot be moved."
  type        = string
  default     = null

  validation {
    condition     = var.ledger_location == null || can(regex("^([a-z]+-[a-z]+[0-9]+|[a-z]+[0-9]+)$", var.ledger_location))
    error_message = "ledger_location is a region such as us-central1, or a multi-region such as nam5."
  }
}

variable "legacy_node_zones" {
  description = "The zones in which Pitstop also watches legacy TPU Nodes, of the TPU API's version 1. Each zone costs one more call whenever patrol lists it."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for z in var.legacy_node_zones : can(regex("^[a-z]+-[a-z]+[0-9]+-[a-z]$", z))])
    error_message = "legacy_node_zones takes zones, such as us-central1-b."
  }
}

variable "log_level" {
  description = "The lowest level that the functions log, INFO or DEBUG. Metrics and alerts count lines of INFO."
  type        = string
  default     = "INFO"

  validation {
    condition     = contains(["DEBUG", "INFO"], var.log_level)
    error_message = "log_level is INFO or DEBUG: metrics and alerts count lines of INFO, so no higher level will do."
  }
}

variable "notification_channels" {
  description = "The full names of the Cloud Monitoring channels that receive the alerts, projects/P/notificationChannels/N."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for c in var.notification_channels : can(regex("^projects/[^/]+/notificationChannels/[^/]+$", c))])
    error_message = "A notification channel needs its full name, projects/P/notificationChannels/N. To find it, run: gcloud beta monitoring channels list."
  }
}

variable "notify" {
  description = "The targets that hear of incidents. A Slack bot posts to slack_channel, the ID of a channel that it was invited to, with the token in slack_token_secret. slack_webhook_secret holds the address of a Slack webhook instead, and chat_webhook_secret that of a Google Chat space. webhook_url calls any program, with a signature by the key in webhook_secret. Each secret is one of Secret Manager, projects/P/secrets/S. per_minute, 20 by default, bounds the messages to each target."
  type        = map(string) # of an object Terraform would drop a misspelt key before any validation
  default     = {}

  # An error shows the value of each expression in a condition, except for a map's. So no condition reads a single value: it may be a token
  # that somebody pasted.

  validation {
    condition     = length(setsubtract(keys(var.notify), keys(local.notify_defaults))) == 0
    error_message = "notify has no ${join(", ", setsubtract(keys(var.notify), keys(local.notify_defaults)))}, only ${join(", ", keys(local.notify_defaults))}."
  }

  validation {
    condition     = alltrue([for key, value in var.notify : can(regex("^(projects/[^/]+/secrets/[^/]+)?$", value)) if endswith(key, "_secret") && value != null])
    error_message = "A secret needs its full name, projects/P/secrets/S. Its value stays in Secret Manager. ${join(", ", [for key, value in var.notify : key if endswith(key, "_secret") && value != null && !can(regex("^(projects/[^/]+/secrets/[^/]+)?$", value))])} has another form."
  }

  validation {
    condition     = alltrue([for pair in [["slack_channel", "slack_token_secret"], ["webhook_url", "webhook_secret"]] : length(setintersection(pair, [for key, value in var.notify : key if try(length(value), 0) > 0])) != 1])
    error_message = "slack_channel needs slack_token_secret, webhook_url needs webhook_secret, and the other way round."
  }

  validation {
    condition     = alltrue([for key, value in var.notify : can(regex("^([A-Z][A-Z0-9]+)?$", value)) if key == "slack_channel" && value != null])
    error_message = "slack_channel is the ID of a channel, such as C0123456789. It is at the end of the channel's details in Slack."
  }

  validation {
    condition     = alltrue([for key, value in var.notify : can(regex("^(https://.*)?$", value)) && !can(regex("^https://(hooks[.]slack[.]com|chat[.]googleapis[.]com)/", value)) if key == "webhook_url" && value != null])
    error_message = "webhook_url begins with https://, and it is no webhook of Slack or Google Chat: the address of such a webhook is a secret, for slack_webhook_secret or chat_webhook_secret."
  }

  validation {
    condition     = alltrue([for key, value in var.notify : can(regex("^[1-9][0-9]*$", value)) if key == "per_minute" && value != null])
    error_message = "per_minute has to be a whole number, at least 1. To send no messages, leave the targets out."
  }
}

variable "policy_uri" {
  description = "The policy file, gs://bucket/object. Without it only the presets count. Terraform allows the functions to read that object, and this grant needs uniform bucket-level access on the bucket."
  type        = string
  default     = ""

  validation {
    condition     = var.policy_uri == "" || can(regex("^gs://[^/]+/.*[^/]$", var.policy_uri))
    error_message = "policy_uri is empty or gs://bucket/object."
  }
}

variable "prefix" {
  description = "The beginning of every name. It makes room for a second deployment in a project, or for a name that is taken."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^([a-z][a-z0-9]{0,4}-)?$", var.prefix))
    error_message = "prefix is empty, or has at most five small letters and digits and then a dash, such as dev-."
  }
}

variable "project_id" {
  description = "The project that Pitstop runs in. Pitstop also watches its TPUs, unless watched_projects names other projects."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "${var.project_id} is no ID of a project. A project's number or display name does not fit, nor does an ID that begins with a domain."
  }
}

variable "region" {
  description = "The region that the functions run in. Pitstop watches TPUs of every zone, whatever the region is. A later change moves the functions and leaves the ledger."
  type        = string
  default     = "us-central1"

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "${var.region} is no region such as us-central1. A zone has one letter too many."
  }
}

variable "shared_vpc_subnetworks" {
  description = "The subnetworks of a host project that TPUs are in, projects/HOST/regions/R/subnetworks/S. Pitstop has to be allowed to use them before it creates a TPU there."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for s in var.shared_vpc_subnetworks : can(regex("^projects/[^/]+/regions/[^/]+/subnetworks/[^/]+$", s))])
    error_message = "A subnetwork needs its full name, projects/HOST/regions/R/subnetworks/S."
  }
}

variable "tpu_roles" {
  description = "The kind of roles in watched projects. custom makes roles with exactly the permissions of the table in the README, and needs roles/iam.roleAdmin there. predefined grants roles/tpu.viewer and roles/tpu.admin, and to patrol two roles of Cloud Logging."
  type        = string
  default     = "custom"

  validation {
    condition     = contains(["predefined", "custom"], var.tpu_roles)
    error_message = "tpu_roles is custom or predefined."
  }
}

variable "tpu_service_accounts" {
  description = "The e-mail addresses of the accounts that TPUs run as. Pitstop has to be allowed to act as such an account before it creates a TPU with it."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for a in var.tpu_service_accounts : can(regex("^[^@/]+@[a-z0-9.-]+\\.gserviceaccount\\.com$", a))])
    error_message = "tpu_service_accounts takes e-mail addresses of service accounts."
  }
}

variable "watched_projects" {
  description = "The projects with the TPUs that Pitstop watches. The default is the project that Pitstop runs in."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for p in var.watched_projects : can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", p))])
    error_message = "watched_projects takes the IDs of projects. Numbers and display names do not fit."
  }
}
