variable "account_prefix" {
  description = "The beginning of the name of the account that Pub/Sub calls the function as."
  type        = string
  default     = "pitstop-"

  validation {
    condition     = length("${var.account_prefix}${var.name}-push") <= 30
    error_message = "${var.account_prefix}${var.name}-push is longer than 30 characters, the limit for the name of an account."
  }
}

variable "archive" {
  description = "The path of the function's archive, as scripts/package writes it."
  type        = string

  validation {
    condition     = fileexists(var.archive)
    error_message = "${var.archive} does not exist: run `go run ./scripts/package` in Pitstop's repository first."
  }
}

variable "build_service_account" {
  description = "The full name of the account that builds the function, projects/P/serviceAccounts/E."
  type        = string

  validation {
    condition     = can(regex("^projects/[^/]+/serviceAccounts/[^/]+$", var.build_service_account))
    error_message = "${var.build_service_account} is no full name of an account, such as projects/P/serviceAccounts/E."
  }
}

variable "concurrency" {
  description = "The number of messages that one instance handles at a time. More than one needs a whole CPU, and the function has one."
  type        = number
  default     = 1

  validation {
    condition     = var.concurrency >= 1 && var.concurrency <= 1000
    error_message = "concurrency has to be between 1 and 1000."
  }
}

variable "dead_letter" {
  description = "Whether Pub/Sub keeps a message that no delivery could get handled. Without it no message is kept longer than 10 minutes, which suits only ticks."
  type        = bool
  default     = true
}

variable "docker_repository" {
  description = "The repository of Artifact Registry for the function's images, projects/P/locations/R/repositories/N in the function's project and region. The default is Cloud Functions' own gcf-artifacts."
  type        = string
  default     = null

  validation {
    condition     = var.docker_repository == null || startswith(coalesce(var.docker_repository, "-"), "projects/${var.project_id}/locations/${var.region}/repositories/")
    error_message = "docker_repository has to be in the function's project and region, projects/${var.project_id}/locations/${var.region}/repositories/N. Cloud Functions accepts no other."
  }
}

variable "entry_point" {
  description = "The entry point that the function registers, such as HandleMaintenance."
  type        = string
}

variable "environment" {
  description = "The function's environment, except for the topics that it publishes on."
  type        = map(string)
  default     = {}
}

variable "kms_key" {
  description = "The Cloud KMS key that encrypts dead letters. Without it Google's own keys do."
  type        = string
  default     = null
}

variable "labels" {
  description = "Labels for every resource that can have labels."
  type        = map(string)
  default     = {}
}

variable "max_instances" {
  description = "The highest number of instances."
  type        = number
  default     = 3

  validation {
    condition     = var.max_instances >= 1 && floor(var.max_instances) == var.max_instances
    error_message = "max_instances has to be a whole number, at least 1."
  }
}

variable "memory" {
  description = "The memory of an instance. The default is the minimum of Cloud Run's second generation."
  type        = string
  default     = "512Mi"

  validation {
    condition     = can(regex("^[0-9]+(Mi|Gi|M|G)$", var.memory))
    error_message = "${var.memory} is no amount of memory such as 512Mi or 1Gi."
  }
}

variable "name" {
  description = "The name of the function, of its Cloud Run service and of its subscription."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,40}[a-z0-9]$", var.name))
    error_message = "${var.name} is no name of a function. It has small letters, digits and dashes, at most 42."
  }
}

variable "project_id" {
  description = "The project that the function runs in."
  type        = string
}

variable "project_number" {
  description = "The number of that project, which names its Pub/Sub agent."
  type        = string

  validation {
    condition     = can(regex("^[0-9]+$", var.project_number))
    error_message = "${var.project_number} is no number of a project."
  }
}

variable "publishes_to" {
  description = "The topics that the function publishes on, each by the environment variable that holds its name. The function may publish on no other topic."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for topic in values(var.publishes_to) : can(regex("^projects/[^/]+/topics/[^/]+$", topic))])
    error_message = "publishes_to takes full names of topics, projects/P/topics/T."
  }
}

variable "region" {
  description = "The region that the function runs in."
  type        = string
}

variable "runtime" {
  description = "The runtime that the function is built for."
  type        = string
  default     = "go126"

  validation {
    condition     = can(regex("^go1[0-9]{2}$", var.runtime))
    error_message = "${var.runtime} is no runtime for Go such as go126."
  }
}

variable "secrets" {
  description = "The secret environment variables, each with its secret, projects/P/secrets/S. The function gets the newest version, and may read no other secret."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for secret in values(var.secrets) : can(regex("^projects/[^/]+/secrets/[^/]+$", secret))])
    error_message = "secrets takes full names of secrets, projects/P/secrets/S."
  }
}

variable "service_account" {
  description = "The e-mail address of the account that the function acts as."
  type        = string

  validation {
    condition     = can(regex("^[^@: ]+@[^@: ]+$", var.service_account))
    error_message = "${var.service_account} is no e-mail address of an account."
  }
}

variable "source_bucket" {
  description = "The bucket for the archive."
  type        = string
}

variable "timeout_seconds" {
  description = "The time limit for one message, in seconds. The acknowledgement deadline is a minute longer, and Pub/Sub allows 600 seconds for it."
  type        = number
  default     = 300

  validation {
    condition     = var.timeout_seconds >= 10 && var.timeout_seconds <= 540
    error_message = "timeout_seconds has to be between 10 and 540: a minute above it has to fit into Pub/Sub's longest acknowledgement deadline."
  }
}

variable "topic" {
  description = "The full name of the topic that the function reads, projects/P/topics/T."
  type        = string

  validation {
    condition     = can(regex("^projects/[^/]+/topics/[^/]+$", var.topic))
    error_message = "${var.topic} is no full name of a topic, such as projects/P/topics/T."
  }
}
