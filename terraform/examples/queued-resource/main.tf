# What a Spot TPU needs so that Pitstop can bring it and its training back: an account, a checkpoint bucket, a start-up
# script that starts the training under pitcrew, and the labels and metadata that say what is allowed and where checkpoints
# are. The google provider has no resource for a TPU of this sort and no argument for automatic checkpoints, so the order
# itself is a call of the Cloud TPU API, which `terraform output -raw order` prints.

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
          autocheckpointEnabled = true # the runtime sends SIGTERM before maintenance, for frameworks that save on it
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

  # The same on every worker and at every start. Pitstop orders the TPU again with this very script, and nothing else starts
  # the training.
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

  # Checkpoints outlive the deployment: a destroy leaves the bucket as it is, and whoever applies again imports it first.
  deletion_policy = "ABANDON"
}

resource "google_storage_bucket_object" "pitcrew" {
  bucket = google_storage_bucket.checkpoints.name
  name   = "bin/pitcrew-${filesha256(var.pitcrew)}"
  source = var.pitcrew

  # The start-up script of a TPU that is there names the pitcrew of its day, and so does the spec that Pitstop orders it again
  # with. A newer one is laid beside it, and none is deleted.
  deletion_policy = "ABANDON"
}

# The training writes checkpoints, the crew its acknowledgements and, where no Pitstop runs, the lease.
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

  project_id           = var.project_id
  region               = var.region
  allow                = ["request_checkpoint", "restart", "recreate"]
  checkpoint_buckets   = [google_storage_bucket.checkpoints.name]
  tpu_service_accounts = [google_service_account.trainer.email]
}

variable "accelerator_type" {
  description = "The type of the TPU, such as v5litepod-16."
  type        = string
  default     = "v5litepod-16"
}

variable "command" {
  description = "The command that trains, as each worker runs it. It has to resume from the newest checkpoint by itself."
  type        = string
  default     = "python3 /opt/train/train.py"
}

variable "name" {
  description = "The name of the TPU, of its queued resource and of the workload."
  type        = string
  default     = "llama-8b"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,20}[a-z0-9]$", var.name))
    error_message = "${var.name} does not fit into all the names that are made of it: small letters, digits and dashes, at most 22."
  }
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

variable "project_id" {
  description = "The project of the TPU."
  type        = string
}

variable "region" {
  description = "The region of the checkpoint bucket and of Pitstop: that of the TPU, so that checkpoints do not travel."
  type        = string
  default     = "us-west4"
}

variable "runtime_version" {
  description = "The software of the TPU's machines."
  type        = string
  default     = "v2-alpha-tpuv5-lite"
}

variable "subnetwork" {
  description = "The subnetwork of the TPU, projects/P/regions/R/subnetworks/S; that of the default network if it is not given. It has to have Private Google Access, which subnetworks have not by default: gcloud compute networks subnets update S --region=R --enable-private-ip-google-access."
  type        = string
  default     = null
}

variable "zone" {
  description = "The zone of the TPU."
  type        = string
  default     = "us-west4-a"
}

output "next" {
  description = "What to look at next, once the TPU is ordered."
  value       = module.pitstop.next
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
