# One Pitstop watches the TPUs of several projects from a project of its own. In each of them Terraform makes log sinks that send to Pitstop's
# topics. Pitstop receives the right to read TPUs and the audit log there, and to write a canary a day. It needs no other grant. No switch is
# allowed, so Pitstop changes nothing.
#
# Where Pitstop is deployed already, the sinks and grants belong to that installation. Set pitstop_installed: then this configuration makes
# nothing and prints the line for the installation's terraform.tfvars.

module "pitstop" {
  source = "../.."
  count  = var.pitstop_installed ? 0 : 1

  project_id            = var.project_id
  watched_projects      = var.watched_projects
  notification_channels = var.notification_channels
}

variable "notification_channels" {
  description = "The full names of the Cloud Monitoring channels that receive the alerts, projects/P/notificationChannels/N."
  type        = list(string)
  default     = []
}

variable "pitstop_installed" {
  description = "Whether another configuration has deployed Pitstop in the project already. With true this one deploys no second Pitstop."
  type        = bool
  default     = false
}

variable "project_id" {
  description = "The project that Pitstop runs in."
  type        = string
}

variable "watched_projects" {
  description = "The projects with the TPUs to watch."
  type        = set(string)
}

output "accounts" {
  description = "The service account of each function, for the owners of the watched projects."
  value       = one(module.pitstop[*].accounts)
}

output "next" {
  description = "The commands to run next. The installation prints them where Pitstop was there already."
  value       = one(module.pitstop[*].next)
}

output "terraform_tfvars" {
  description = "The line that an existing installation needs in its terraform.tfvars. A list that it has already takes these values too."
  value       = var.pitstop_installed ? "watched_projects = ${jsonencode(var.watched_projects)}" : null
}

output "training_grants" {
  description = "The grants that a training needs, for trainings that read this state."
  value       = one(module.pitstop[*].training_grants)
}
