# What is likely a mistake, and still may be meant: a plan says so in a warning.

locals {
  # The regions of Cloud Functions in November 2026, and the multi-regions of Firestore.
  # https://cloud.google.com/functions/docs/locations, https://cloud.google.com/firestore/docs/locations
  regions = split(" ", join(" ", [
    "africa-south1 asia-east1 asia-east2 asia-northeast1 asia-northeast2 asia-northeast3 asia-south1 asia-south2 asia-southeast1",
    "asia-southeast2 asia-southeast3 australia-southeast1 australia-southeast2 europe-central2 europe-north1 europe-north2",
    "europe-southwest1 europe-west1 europe-west10 europe-west12 europe-west2 europe-west3 europe-west4 europe-west6 europe-west8",
    "europe-west9 me-central1 me-central2 me-west1 northamerica-northeast1 northamerica-northeast2 northamerica-south1",
    "southamerica-east1 southamerica-west1 us-central1 us-east1 us-east4 us-east5 us-south1 us-west1 us-west2 us-west3 us-west4",
  ]))
  multi_regions = ["eur3", "nam5", "nam7"]
}

check "regions" {
  assert {
    condition     = contains(local.regions, var.region)
    error_message = "No region ${var.region} was known when this release was made. If Google has opened it since, ignore this. Otherwise correct region: the apply would fail halfway."
  }

  assert {
    condition     = contains(concat(local.regions, local.multi_regions), coalesce(var.ledger_location, var.region))
    error_message = "No location ${coalesce(var.ledger_location, var.region)} of Firestore was known when this release was made. If Google has opened it since, ignore this. Otherwise correct ledger_location: a database cannot be moved."
  }
}

check "alerts" {
  assert {
    condition     = length(var.notification_channels) > 0
    error_message = "notification_channels is empty: alerts open, and nobody hears of them. To list the channels, run: gcloud beta monitoring channels list."
  }
}

check "console" {
  assert {
    condition     = alltrue([for p in data.google_project.console : coalesce(p.org_id, p.folder_id, "none") != "none"])
    error_message = "console names people, and ${var.project_id} is in no organization: there Google's sign-in lets in nobody without an OAuth client of your own. See \"The console\" in the README."
  }
}

check "recreate" {
  assert {
    condition     = length(local.creators) == 0 || length(var.clusters) > 0 || length(var.tpu_service_accounts) > 0
    error_message = "allow has a switch that creates TPUs, and tpu_service_accounts is empty: Google refuses to create a TPU as an account that Pitstop may not act as. Name the accounts of the TPUs, unless each training makes its own grants with modules/training."
  }

  assert {
    condition     = length(local.bucket_grants) == 0 || length(var.checkpoint_buckets) > 0
    error_message = "allow has a switch that needs checkpoints, and checkpoint_buckets is empty: Pitstop can verify no checkpoint and write no lease. Name the buckets, unless each training makes its own grants with modules/training."
  }
}
