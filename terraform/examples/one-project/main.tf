# Pitstop watches every TPU of one project. With the switches below it brings back lost Spot TPUs with the label pitstop-policy=spot, and
# training resumes from its last complete checkpoint.
#
# Where Pitstop is deployed already, set pitstop_installed, and pitstop_state if its state is in Cloud Storage.

module "pitstop" {
  source = "../.."
  count  = var.pitstop_installed ? 0 : 1

  project_id = var.project_id
  allow      = local.allow

  # Pitstop needs a grant on each of these.
  checkpoint_buckets   = var.checkpoint_buckets
  tpu_service_accounts = var.tpu_service_accounts

  notification_channels = [google_monitoring_notification_channel.mail.id]
}

locals {
  allow = ["request_checkpoint", "restart", "recreate"]
}

# What the module above would have granted.
module "training" {
  source = "../../modules/training"
  count  = var.pitstop_installed && var.pitstop_state != null ? 1 : 0

  state                = var.pitstop_state
  checkpoint_buckets   = var.checkpoint_buckets
  tpu_service_accounts = var.tpu_service_accounts
}

resource "google_monitoring_notification_channel" "mail" {
  project      = var.project_id
  display_name = "Pitstop"
  type         = "email"
  labels       = { email_address = var.mail }
}

variable "checkpoint_buckets" {
  description = "The buckets that hold checkpoint directories, without gs://."
  type        = set(string)
}

variable "mail" {
  description = "The e-mail address that receives the alerts."
  type        = string
}

variable "pitstop_installed" {
  description = "Whether another configuration has deployed Pitstop in the project already. With true this one deploys no second Pitstop."
  type        = bool
  default     = false
}

variable "pitstop_state" {
  description = "The place of that installation's state in Cloud Storage, for the grants of Pitstop's accounts on the buckets and accounts. Without it, add the lines of the output terraform_tfvars to the installation."
  type        = map(string)
  default     = null

  validation {
    condition     = var.pitstop_state == null || var.pitstop_installed
    error_message = "pitstop_state is the state of an installation that is there already: set pitstop_installed = true too."
  }
}

variable "project_id" {
  description = "The project with the TPUs, in which Pitstop runs too."
  type        = string
}

variable "tpu_service_accounts" {
  description = "The e-mail addresses of the accounts that the TPUs run as."
  type        = set(string)
}

output "next" {
  description = "The commands to run next. The installation prints them where Pitstop was there already."
  value       = one(module.pitstop[*].next)
}

output "terraform_tfvars" {
  description = "The lines that an existing installation needs in its terraform.tfvars. Lists that it has already take these values too."
  value = !var.pitstop_installed ? null : join("\n", concat(
    ["allow = ${jsonencode(local.allow)}", "notification_channels = ${jsonencode([google_monitoring_notification_channel.mail.id])}"],
    var.pitstop_state != null ? [] : ["checkpoint_buckets = ${jsonencode(var.checkpoint_buckets)}", "tpu_service_accounts = ${jsonencode(var.tpu_service_accounts)}"],
  ))
}

output "training_grants" {
  description = "The grants that a training needs, for trainings that read this state."
  value       = one(module.pitstop[*].training_grants)
}
