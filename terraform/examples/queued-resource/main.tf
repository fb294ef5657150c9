# A Spot TPU that Pitstop can bring back together with its training. It needs an account, a checkpoint bucket, and a start-up script that
# starts the training under pitcrew. It also needs labels and metadata: they name the policy and the directory of the checkpoints. The google
# provider has no resource for a TPU of this sort and no argument for automatic checkpoints. So a call of the Cloud TPU API orders it, and
# `terraform output -raw order` prints that call.
#
# Where Pitstop is deployed already, set pitstop_installed, and pitstop_state if its state is in Cloud Storage.

locals {
  directory = "gs://${google_storage_bucket.checkpoints.name}/${var.name}"
  parent    = "projects/${var.project_id}/locations/${var.zone}"

  order = {
    tpu = {
      nodeSpec = [{
        parent = local.parent
        nodeId = var.name
        node = {
          acceleratorType       = var.accelerator_type
          runtimeVersion        = var.runtime_version
          autocheckpointEnabled = true # before maintenance the runtime sends SIGTERM, and many frameworks save on that
          # Without external addresses the start-up script reaches Cloud Storage only where the subnetwork has Private Google
          # Access.
          networkConfig  = merge({ enableExternalIps = false }, var.subnetwork == null ? {} : { subnetwork = var.subnetwork })
          serviceAccount = { email = google_service_account.trainer.email, scope = ["https://www.googleapis.com/auth/cloud-platform"] }
          labels         = { pitstop-policy = "spot", pitstop-workload = var.name }
          metadata = {
            pitstop-checkpoint-dir = local.directory
            startup-script         = local.startup_script
          }
        }
      }]
    }
    spot = {}
  }

  # Only a subnetwork of another project needs a grant: Pitstop's role in the TPU's own project covers the rest.
  shared_vpc_subnetworks = [for s in var.subnetwork[*] : s if can(regex("^projects/", s)) && !startswith(s, "projects/${var.project_id}/")]

  # Every worker runs this script at every start. Pitstop orders the TPU again with the same script, and only this script starts the training.
  startup_script = <<-EOT
    #!/bin/bash
    set -euo pipefail
    gcloud storage cp gs://${google_storage_bucket.checkpoints.name}/${google_storage_bucket_object.pitcrew.name} /usr/local/bin/pitcrew
    chmod +x /usr/local/bin/pitcrew
    exec pitcrew run -- ${var.command}
  EOT
}

resource "google_service_account" "trainer" {
  project      = var.project_id
  account_id   = "${var.name}-trainer"
  display_name = "Training ${var.name}"
}

resource "google_storage_bucket" "checkpoints" {
  project  = var.project_id
  name     = "${var.project_id}-${var.name}-checkpoints"
  location = var.region
  labels   = { pitstop-workload = var.name }

  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  # Checkpoints outlive the deployment: a destroy leaves the bucket as it is. Import it before you apply again.
  deletion_policy = "ABANDON"
}

resource "google_storage_bucket_object" "pitcrew" {
  bucket = google_storage_bucket.checkpoints.name
  name   = "bin/pitcrew-${filesha256(var.pitcrew)}"
  source = var.pitcrew

  # The start-up script of an existing TPU names the pitcrew of its day, and so does the order that Pitstop would repeat. So a newer pitcrew
  # becomes a second object, and no object is deleted.
  deletion_policy = "ABANDON"
}

# The training writes checkpoints. The crew writes its acknowledgements and, where no Pitstop runs, the lease.
resource "google_storage_bucket_iam_member" "trainer" {
  bucket = google_storage_bucket.checkpoints.name
  role   = "roles/storage.objectUser"
  member = google_service_account.trainer.member
}

# The crew reports through Cloud Logging.
resource "google_project_iam_member" "trainer" {
  project = var.project_id
  role    = "roles/logging.logWriter"
  member  = google_service_account.trainer.member
}

module "pitstop" {
  source = "../.."
  count  = var.pitstop_installed ? 0 : 1

  project_id           = var.project_id
  region               = var.region
  allow                = ["request_checkpoint", "restart", "recreate"]
  checkpoint_buckets   = [google_storage_bucket.checkpoints.name]
  tpu_service_accounts = [google_service_account.trainer.email]

  shared_vpc_subnetworks = local.shared_vpc_subnetworks
  notification_channels  = var.notification_channels
}

# What the module above would have granted.
module "training" {
  source = "../../modules/training"
  count  = var.pitstop_installed && var.pitstop_state != null ? 1 : 0

  state                  = var.pitstop_state
  checkpoint_buckets     = [google_storage_bucket.checkpoints.name]
  tpu_service_accounts   = [google_service_account.trainer.email]
  shared_vpc_subnetworks = local.shared_vpc_subnetworks
}

variable "accelerator_type" {
  description = "The type of the TPU, such as v5litepod-16."
  type        = string
  default     = "v5litepod-16"
}

variable "command" {
  description = "The training command. Each worker runs it, and it has to resume from the newest checkpoint by itself."
  type        = string
  default     = "python3 /opt/train/train.py"
}

variable "name" {
  description = "The name of the TPU, of its queued resource and of the workload."
  type        = string
  default     = "llama-8b"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,20}[a-z0-9]$", var.name))
    error_message = "${var.name} does not fit into the names of account, bucket and TPU. It may have small letters, digits and dashes, at most 22."
  }
}

variable "notification_channels" {
  description = "The full names of the Cloud Monitoring channels that receive the alerts, projects/P/notificationChannels/N."
  type        = list(string)
  default     = []
}

variable "pitcrew" {
  description = "The program pitcrew, built for the machines of the TPU."
  type        = string
  default     = "../../../build/pitcrew"

  validation {
    condition     = fileexists(var.pitcrew)
    error_message = "${var.pitcrew} does not exist: run `go run ./scripts/package pitcrew` in Pitstop's repository first."
  }
}

variable "pitstop_installed" {
  description = "Whether another configuration has deployed Pitstop in the project already. With true this one deploys no second Pitstop."
  type        = bool
  default     = false
}

variable "pitstop_state" {
  description = "The place of that installation's state in Cloud Storage, for the grants of Pitstop's accounts on the bucket and the account. Without it, add the lines of the output terraform_tfvars to the installation."
  type        = map(string)
  default     = null

  validation {
    condition     = var.pitstop_state == null || var.pitstop_installed
    error_message = "pitstop_state is the state of an installation that is there already: set pitstop_installed = true too."
  }
}

variable "project_id" {
  description = "The project of the TPU."
  type        = string
}

variable "region" {
  description = "The region of the checkpoint bucket and of Pitstop. Take that of the TPU, so that checkpoints stay in the region."
  type        = string
  default     = "us-west4"
}

variable "runtime_version" {
  description = "The software of the TPU's machines."
  type        = string
  default     = "v2-alpha-tpuv5-lite"
}

variable "subnetwork" {
  description = "The subnetwork of the TPU, projects/P/regions/R/subnetworks/S. The default is that of the default network. It needs Private Google Access, which is off by default: gcloud compute networks subnets update S --region=R --enable-private-ip-google-access."
  type        = string
  default     = null
}

variable "zone" {
  description = "The zone of the TPU."
  type        = string
  default     = "us-west4-a"
}

output "next" {
  description = "The commands to run once the TPU is ordered. The installation prints them where Pitstop was there already."
  value       = one(module.pitstop[*].next)
}

output "order" {
  description = "The call that orders the TPU."
  value       = <<-EOT
    curl --fail -X POST -H "Authorization: Bearer $(gcloud auth print-access-token)" -H "Content-Type: application/json" \
      "https://tpu.googleapis.com/v2alpha1/${local.parent}/queuedResources?queuedResourceId=${var.name}" -d @- <<'ORDER'
    ${jsonencode(local.order)}
    ORDER
  EOT
}

output "terraform_tfvars" {
  description = "The lines that an installation without shared state needs in its terraform.tfvars. Lists that it has already take these values too."
  value       = !var.pitstop_installed || var.pitstop_state != null ? null : <<-EOT
    allow                  = ["request_checkpoint", "restart", "recreate"]
    checkpoint_buckets     = ["${google_storage_bucket.checkpoints.name}"]
    tpu_service_accounts   = ["${google_service_account.trainer.email}"]
    shared_vpc_subnetworks = ${jsonencode(local.shared_vpc_subnetworks)}
  EOT
}

output "training_grants" {
  description = "The grants that a training needs, for trainings that read this state."
  value       = one(module.pitstop[*].training_grants)
}
