# A customer's key. These runs have a file and so a state of their own: a database keeps the key that it was made with, so a state in which
# the databases exist already cannot show this.

mock_provider "google" {
  mock_resource "google_pubsub_topic" {
    defaults = { id = "projects/demo-project/topics/mocked" }
  }
  mock_resource "google_service_account" {
    defaults = {
      email  = "mocked@demo-project.iam.gserviceaccount.com"
      member = "serviceAccount:mocked@demo-project.iam.gserviceaccount.com"
      name   = "projects/demo-project/serviceAccounts/mocked@demo-project.iam.gserviceaccount.com"
    }
  }
  mock_resource "google_cloudfunctions2_function" {
    defaults = { service_config = { uri = "https://mocked.run.app" } }
  }
  mock_resource "google_logging_project_sink" {
    defaults = { writer_identity = "serviceAccount:service-123456789012@gcp-sa-logging.iam.gserviceaccount.com" }
  }
  mock_resource "google_monitoring_dashboard" {
    defaults = { id = "projects/demo-project/dashboards/1" }
  }
}

mock_provider "google-beta" {
  mock_resource "google_project_service_identity" {
    defaults = {
      email  = "service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com"
      member = "serviceAccount:service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com"
    }
  }
}

# A wait that is made up takes no time.
mock_provider "time" {}

variables {
  project_id            = "demo-project"
  archive_directory     = "./tests/archives"
  notification_channels = ["projects/demo-project/notificationChannels/1"]
}

run "a_key_of_ones_own" {
  command = plan

  variables {
    kms_grants = true
    kms_key    = "projects/keys/locations/us-central1/keyRings/pitstop/cryptoKeys/pitstop"
  }

  assert {
    condition = (
      alltrue([for topic in google_pubsub_topic.main : topic.kms_key_name == var.kms_key]) && one(google_storage_bucket.archives.encryption).default_kms_key_name == var.kms_key &&
      alltrue([for db in google_firestore_database.main : one(db.cmek_config).kms_key_name == var.kms_key])
    )
    error_message = "Something that is kept is not under the key that was given."
  }

  # The agents that encrypt may use the key, and all that is encrypted waits for that.
  assert {
    condition = (
      { for agent, grant in google_kms_crypto_key_iam_member.agent : agent => "${grant.crypto_key_id} ${grant.role}" } ==
      { for agent in ["firestore", "pubsub", "storage"] : agent => "${var.kms_key} roles/cloudkms.cryptoKeyEncrypterDecrypter" } &&
      keys(google_project_service_identity.agent) == ["firestore.googleapis.com", "pubsub.googleapis.com"] && contains(keys(google_project_service.main), "cloudkms.googleapis.com") &&
      time_sleep.key[0].create_duration == "120s" && time_sleep.key[0].triggers == tomap({ key = var.kms_key })
    )
    error_message = "An agent may not use the key, or its grant is not waited for."
  }
}

run "a_key_that_its_owner_grants" {
  command = plan

  variables {
    kms_key = "projects/keys/locations/us-central1/keyRings/pitstop/cryptoKeys/pitstop"
  }

  assert {
    condition     = length(google_kms_crypto_key_iam_member.agent) == 0 && length(time_sleep.key) == 0 && length(data.google_storage_project_service_account.agent) == 0
    error_message = "Terraform grants on a key although nobody has set kms_grants."
  }
}

run "a_key_of_another_region" {
  command = plan

  variables {
    kms_key = "projects/keys/locations/europe-west4/keyRings/pitstop/cryptoKeys/pitstop"
  }

  expect_failures = [var.kms_key]
}

run "a_key_and_databases_elsewhere" {
  command = plan

  variables {
    kms_key         = "projects/keys/locations/us-central1/keyRings/pitstop/cryptoKeys/pitstop"
    ledger_location = "nam5"
  }

  expect_failures = [var.kms_key]
}
