variable "allow" {
  description = "The switches that the deployment allows at the most; the rest is forbidden, whatever a policy says. Empty, Pitstop watches and touches nothing, and none of its accounts may change a TPU."
  type        = set(string)
  default     = []

  validation {
    condition     = length(setsubtract(var.allow, local.switches)) == 0
    error_message = "There is no switch ${join(", ", setsubtract(var.allow, local.switches))}, only ${join(", ", local.switches)}."
  }
}

variable "archive_directory" {
  description = "The folder with the functions' archives, as scripts/package writes it; build in the repository if it is not given."
  type        = string
  default     = null
}

variable "brake_per_project" {
  description = "How many destructive calls an hour may bring in a watched project."
  type        = number
  default     = 30

  validation {
    condition     = var.brake_per_project >= 1 && floor(var.brake_per_project) == var.brake_per_project
    error_message = "brake_per_project has to be a whole number from 1 on; to forbid destructive calls, leave recreate out of allow."
  }
}

variable "brake_per_zone" {
  description = "How many destructive calls an hour may bring in one zone."
  type        = number
  default     = 10

  validation {
    condition     = var.brake_per_zone >= 1 && floor(var.brake_per_zone) == var.brake_per_zone
    error_message = "brake_per_zone has to be a whole number from 1 on; to forbid destructive calls, leave recreate out of allow."
  }
}

variable "checkpoint_buckets" {
  description = "The buckets that hold checkpoint directories, without gs://. Pitstop verifies checkpoints there and writes leases and requests beside them; without its bucket here it can do neither for a TPU."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for b in var.checkpoint_buckets : can(regex("^[a-z0-9][a-z0-9._-]+[a-z0-9]$", b))])
    error_message = "checkpoint_buckets takes names of buckets alone, without gs:// and without a path."
  }
}

variable "docker_repository" {
  description = "A Docker repository of Artifact Registry that is there already and takes the functions' images, projects/P/locations/R/repositories/N in their own project and region. Without one, Pitstop makes its own, which keeps the last three images of each function and what is younger than 30 days, and goes with the deployment."
  type        = string
  default     = null

  validation {
    condition     = var.docker_repository == null || can(regex("^projects/${var.project_id}/locations/${var.region}/repositories/[a-z]([a-z0-9-]*[a-z0-9])?$", var.docker_repository))
    error_message = "docker_repository is named in full and is in the functions' own project and region, projects/${var.project_id}/locations/${var.region}/repositories/N: Cloud Functions takes no other."
  }
}

variable "kms_key" {
  description = "The key of Cloud KMS that databases, topics and the bucket of archives are encrypted with, projects/P/locations/R/keyRings/K/cryptoKeys/N in the functions' region; Google's own if it is not given. A database keeps the key that it was made with. The agents of Firestore, Pub/Sub and Cloud Storage have to be allowed to use it before: see the README."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key == null || can(regex("^projects/[^/]+/locations/${var.region}/keyRings/[^/]+/cryptoKeys/[^/]+$", var.kms_key))
    error_message = "kms_key is named in full and is in the functions' region, projects/P/locations/${var.region}/keyRings/K/cryptoKeys/N: a bucket there takes no other."
  }

  validation {
    condition     = var.kms_key == null || coalesce(var.ledger_location, var.region) == var.region
    error_message = "With kms_key the databases are in the functions' region: Firestore takes a key of its own location alone, and so does the bucket."
  }
}

variable "labels" {
  description = "Labels for everything that can have some; app=pitstop is added."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for key, value in var.labels : can(regex("^[\\p{Ll}\\p{Lo}][\\p{Ll}\\p{Lo}\\p{N}_-]{0,62}$", key)) && can(regex("^[\\p{Ll}\\p{Lo}\\p{N}_-]{0,63}$", value))])
    error_message = "labels takes keys and values of at most 63 small letters, digits, dashes and underscores; a key begins with a letter."
  }
}

variable "ledger_deletion_policy" {
  description = "What terraform destroy does with the ledger and the database of metadata values: ABANDON leaves both as they are, DELETE deletes them."
  type        = string
  default     = "ABANDON"

  validation {
    condition     = contains(["ABANDON", "DELETE"], var.ledger_deletion_policy)
    error_message = "ledger_deletion_policy is ABANDON or DELETE."
  }
}

variable "ledger_location" {
  description = "Where both databases are kept, a location of Firestore such as nam5; the region of the functions if it is not given. It counts for the first apply alone: a database cannot be moved."
  type        = string
  default     = null

  validation {
    condition     = var.ledger_location == null || can(regex("^([a-z]+-[a-z]+[0-9]+|[a-z]+[0-9]+)$", var.ledger_location))
    error_message = "ledger_location is a region such as us-central1, or a multi-region such as nam5."
  }
}

variable "legacy_node_zones" {
  description = "The zones in which legacy TPU Nodes, of the TPU API's version 1, are watched beside TPU VMs; none if it is empty. Each costs a call more as often as it is listed."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for z in var.legacy_node_zones : can(regex("^[a-z]+-[a-z]+[0-9]+-[a-z]$", z))])
    error_message = "legacy_node_zones takes zones, such as us-central1-b."
  }
}

variable "log_level" {
  description = "From which level on the functions log, INFO or DEBUG: metrics and alerts count lines of INFO, and would be blind without them."
  type        = string
  default     = "INFO"

  validation {
    condition     = contains(["DEBUG", "INFO"], var.log_level)
    error_message = "log_level is INFO or DEBUG: metrics and alerts count lines of INFO."
  }
}

variable "notification_channels" {
  description = "The full names of the Cloud Monitoring channels that alerts go to, projects/P/notificationChannels/N."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for c in var.notification_channels : can(regex("^projects/[^/]+/notificationChannels/[^/]+$", c))])
    error_message = "A notification channel is named in full, projects/P/notificationChannels/N: see gcloud beta monitoring channels list."
  }
}

variable "notify" {
  description = "Who is told of incidents; nobody if it is empty. Slack by a bot (slack_channel is the ID of a channel it was invited to, slack_token_secret holds its token) or by an incoming webhook (slack_webhook_secret holds its address), Google Chat by a space's webhook (chat_webhook_secret holds its address), any program by webhook_url, signed with what webhook_secret holds. Secrets are those of Secret Manager, projects/P/secrets/S; per_minute bounds the messages to each."
  type = object({
    slack_channel        = optional(string, "")
    slack_token_secret   = optional(string, "")
    slack_webhook_secret = optional(string, "")
    chat_webhook_secret  = optional(string, "")
    webhook_url          = optional(string, "")
    webhook_secret       = optional(string, "")
    per_minute           = optional(number, 20)
  })
  default = {}

  validation {
    condition     = alltrue([for s in [var.notify.slack_token_secret, var.notify.slack_webhook_secret, var.notify.chat_webhook_secret, var.notify.webhook_secret] : s == "" || can(regex("^projects/[^/]+/secrets/[^/]+$", s))])
    error_message = "A secret is named in full, projects/P/secrets/S; what it holds is nobody's business here."
  }

  validation {
    condition     = (var.notify.slack_channel == "") == (var.notify.slack_token_secret == "") && (var.notify.webhook_url == "") == (var.notify.webhook_secret == "")
    error_message = "slack_channel and slack_token_secret go together, and so do webhook_url and webhook_secret."
  }

  validation {
    condition     = var.notify.webhook_url == "" || startswith(var.notify.webhook_url, "https://")
    error_message = "webhook_url begins with https://."
  }

  validation {
    condition     = var.notify.per_minute >= 1 && floor(var.notify.per_minute) == var.notify.per_minute
    error_message = "per_minute has to be a whole number from 1 on; to be told nothing, leave the targets out."
  }
}

variable "policy_uri" {
  description = "The policy file, gs://bucket/object; empty leaves the presets alone. The functions may read that object, by a grant that takes uniform bucket-level access on its bucket."
  type        = string
  default     = ""

  validation {
    condition     = var.policy_uri == "" || can(regex("^gs://[^/]+/.*[^/]$", var.policy_uri))
    error_message = "policy_uri is empty or gs://bucket/object."
  }
}

variable "prefix" {
  description = "What every name begins with, for a second deployment in a project or where a name is taken."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^([a-z][a-z0-9]{0,4}-)?$", var.prefix))
    error_message = "prefix is empty, or at most five small letters and digits and a dash, such as dev-."
  }
}

variable "project_id" {
  description = "The project that Pitstop runs in. It is also the one that is watched, unless watched_projects names others."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "${var.project_id} is no ID of a project; numbers and names of projects do not fit, nor do IDs that begin with a domain."
  }
}

variable "region" {
  description = "The region that the functions run in. TPUs of every zone are watched, whatever it is. Another one later moves the functions; the ledger stays where the first apply made it."
  type        = string
  default     = "us-central1"

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "${var.region} is no region such as us-central1; a zone has a letter too many."
  }
}

variable "shared_vpc_subnetworks" {
  description = "The subnetworks of a host project that TPUs are in, projects/HOST/regions/R/subnetworks/S: whoever creates a TPU there has to be allowed to use them."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for s in var.shared_vpc_subnetworks : can(regex("^projects/[^/]+/regions/[^/]+/subnetworks/[^/]+$", s))])
    error_message = "A subnetwork is named in full, projects/HOST/regions/R/subnetworks/S."
  }
}

variable "tpu_roles" {
  description = "How the accounts get their permissions in watched projects: custom makes roles that hold exactly what the table in the README lists, which takes roles/iam.roleAdmin there; predefined grants roles/tpu.viewer and roles/tpu.admin, and patrol two roles of Cloud Logging."
  type        = string
  default     = "custom"

  validation {
    condition     = contains(["predefined", "custom"], var.tpu_roles)
    error_message = "tpu_roles is custom or predefined."
  }
}

variable "tpu_service_accounts" {
  description = "The e-mail addresses of the accounts that TPUs run as: whoever creates a TPU has to be allowed to act as its account."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for a in var.tpu_service_accounts : can(regex("^[^@/]+@[a-z0-9.-]+\\.gserviceaccount\\.com$", a))])
    error_message = "tpu_service_accounts takes e-mail addresses of service accounts."
  }
}

variable "watched_projects" {
  description = "The projects whose TPUs are watched; the project that Pitstop runs in if it is empty."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for p in var.watched_projects : can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", p))])
    error_message = "watched_projects takes IDs of projects; numbers and names do not fit."
  }
}
