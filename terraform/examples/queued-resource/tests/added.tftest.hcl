# The training can be added to a Pitstop that another configuration deployed: it deploys no second one.

mock_provider "google" {
  mock_resource "google_service_account" {
    defaults = {
      email  = "llama-8b-trainer@demo-project.iam.gserviceaccount.com"
      member = "serviceAccount:llama-8b-trainer@demo-project.iam.gserviceaccount.com"
    }
  }
}

mock_provider "google-beta" {}

mock_provider "time" {}

override_data {
  target = module.training[0].data.terraform_remote_state.pitstop
  values = {
    outputs = {
      training_grants = {
        bucket          = [{ function = "recovery", role = "roles/storage.objectUser", condition = "resource.name.endsWith(\"/pitstop-lease.json\")", member = "serviceAccount:pitstop-recovery@demo-project.iam.gserviceaccount.com" }]
        service_account = [{ function = "recreate", role = "roles/iam.serviceAccountUser", member = "serviceAccount:pitstop-recreate@demo-project.iam.gserviceaccount.com" }]
        subnetwork      = [{ function = "recreate", role = "roles/compute.networkUser", member = "serviceAccount:pitstop-recreate@demo-project.iam.gserviceaccount.com" }]
      }
    }
  }
}

variables {
  project_id        = "demo-project"
  pitcrew           = "./versions.tf" # any file: only its hash counts
  pitstop_installed = true
}

run "prints_what_the_installation_needs" {
  assert {
    condition     = length(module.pitstop) == 0 && length(module.training) == 0 && output.next == null
    error_message = "A second Pitstop is deployed, or a grant is made that nobody could look up."
  }

  assert {
    condition = output.terraform_tfvars == join("\n", [
      "allow                  = [\"request_checkpoint\", \"restart\", \"recreate\"]",
      "checkpoint_buckets     = [\"demo-project-llama-8b-checkpoints\"]", "tpu_service_accounts   = [\"llama-8b-trainer@demo-project.iam.gserviceaccount.com\"]", "shared_vpc_subnetworks = []", "",
    ])
    error_message = "The installation does not learn of the bucket, the account or the subnetwork."
  }
}

run "grants_by_itself_where_the_state_is_shared" {
  variables {
    pitstop_state = { bucket = "demo-terraform", prefix = "pitstop" }
    subnetwork    = "projects/host-project/regions/us-west4/subnetworks/tpus"
  }

  assert {
    condition = length(module.pitstop) == 0 && output.terraform_tfvars == null && module.training[0].grants == tolist([
      "demo-project-llama-8b-checkpoints recovery roles/storage.objectUser", "llama-8b-trainer@demo-project.iam.gserviceaccount.com recreate roles/iam.serviceAccountUser",
      "projects/host-project/regions/us-west4/subnetworks/tpus recreate roles/compute.networkUser",
    ])
    error_message = "A grant is missing, or another one is made."
  }
}
