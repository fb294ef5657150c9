# Pitstop with its state in Cloud Storage, where a team shares it. Other configurations, such as a training of the example queued-resource,
# read its outputs there.
#
# The bucket has to exist before `terraform init`, and Terraform cannot keep its own state in a bucket that it makes. So make it once:
#
#   gcloud storage buckets create gs://MINE-terraform --project=MINE --location=us-central1 \
#     --uniform-bucket-level-access --public-access-prevention
#   gcloud storage buckets update gs://MINE-terraform --versioning
#   terraform init -backend-config=bucket=MINE-terraform
#
# Versioning keeps every former state. To go back to one, copy its generation over the newest:
#
#   gcloud storage ls --all-versions gs://MINE-terraform/pitstop/default.tfstate
#   gcloud storage cp gs://MINE-terraform/pitstop/default.tfstate#GENERATION gs://MINE-terraform/pitstop/default.tfstate
#
# Locking needs no setting: the backend writes pitstop/default.tflock beside the state, and a second apply stops with the name of the
# person who holds the lock. A killed apply leaves that object behind. When nobody applies any more, `terraform force-unlock ID` removes it.
#
# The state names accounts and grants, and holds no secret. It still lets its writer mislead the next apply, so give
# roles/storage.objectUser only to the people who apply, and roles/storage.objectViewer to those who read its outputs.

module "pitstop" {
  source = "../.."

  project_id            = var.project_id
  allow                 = var.allow
  checkpoint_buckets    = var.checkpoint_buckets
  notification_channels = var.notification_channels
}

variable "allow" {
  description = "The switches that policies may use. With an empty set Pitstop watches and changes nothing."
  type        = set(string)
  default     = []
}

variable "checkpoint_buckets" {
  description = "The buckets that hold checkpoint directories, without gs://. A training with its own configuration makes its grants by itself."
  type        = set(string)
  default     = []
}

variable "notification_channels" {
  description = "The full names of the Cloud Monitoring channels that receive the alerts, projects/P/notificationChannels/N."
  type        = list(string)
  default     = []
}

variable "project_id" {
  description = "The project that Pitstop runs in and watches."
  type        = string
}

output "accounts" {
  description = "The service account of each function."
  value       = module.pitstop.accounts
}

output "next" {
  description = "The commands to run next."
  value       = module.pitstop.next
}

output "topics" {
  description = "The full names of the topics."
  value       = module.pitstop.topics
}

output "training_grants" {
  description = "The roles that Pitstop's accounts need on a training's own things. The module training reads them here."
  value       = module.pitstop.training_grants
}
