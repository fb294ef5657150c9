# Every TPU of one project is watched. With the switches below, Spot TPUs that are labelled pitstop-policy=spot are brought
# back when they are lost, and training resumes from its last complete checkpoint.

module "pitstop" {
  source = "../.."

  project_id = var.project_id
  allow      = ["request_checkpoint", "restart", "recreate"]

  # Where checkpoints are, and what the TPUs run as: both need a grant of their own.
  checkpoint_buckets   = var.checkpoint_buckets
  tpu_service_accounts = var.tpu_service_accounts

  notification_channels = [google_monitoring_notification_channel.mail.id]
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
  description = "Who is told when a person has to look."
  type        = string
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
  description = "What to look at next."
  value       = module.pitstop.next
}
