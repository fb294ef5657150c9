variable "checkpoint_buckets" {
  description = "The buckets that hold the training's checkpoints, without gs://."
  type        = set(string)
  default     = []
}

variable "fine_grained_buckets" {
  description = "The buckets of checkpoint_buckets with fine-grained access control, which is to say without uniform bucket-level access. They take no condition in a grant, so Pitstop may write and delete every object in them."
  type        = set(string)
  default     = []

  validation {
    condition     = length(setsubtract(var.fine_grained_buckets, var.checkpoint_buckets)) == 0
    error_message = "fine_grained_buckets names buckets of checkpoint_buckets: ${join(", ", setsubtract(var.fine_grained_buckets, var.checkpoint_buckets))} is not among them."
  }
}

variable "shared_vpc_subnetworks" {
  description = "The subnetworks of a host project that the training's TPUs are in, projects/HOST/regions/R/subnetworks/S."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for s in var.shared_vpc_subnetworks : can(regex("^projects/[^/]+/regions/[^/]+/subnetworks/[^/]+$", s))])
    error_message = "A subnetwork needs its full name, projects/HOST/regions/R/subnetworks/S."
  }
}

variable "state" {
  description = "The place of the installation's state in Cloud Storage: its bucket and its prefix, as in the installation's backend."
  type        = map(string) # of an object Terraform would drop a key that it does not have

  validation {
    condition     = toset(keys(var.state)) == toset(["bucket", "prefix"])
    error_message = "state has a bucket and a prefix, and no other key: ${join(", ", keys(var.state))}."
  }
}

variable "tpu_service_accounts" {
  description = "The e-mail addresses of the accounts that the training's TPUs run as."
  type        = set(string)
  default     = []
}
