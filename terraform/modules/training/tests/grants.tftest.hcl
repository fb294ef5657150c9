# A training that is added to an installation gives Pitstop's accounts what the installation says, and nothing else.

mock_provider "google" {}

override_data {
  target = data.terraform_remote_state.pitstop
  values = {
    outputs = {
      training_grants = {
        bucket = [
          { function = "checkpoint", role = "roles/storage.objectUser", condition = "resource.name.endsWith(\"/pitstop-request.json\")", member = "serviceAccount:pitstop-checkpoint@demo-project.iam.gserviceaccount.com" },
          { function = "recreate", role = "roles/storage.bucketViewer", condition = "", member = "serviceAccount:pitstop-recreate@demo-project.iam.gserviceaccount.com" },
        ]
        service_account = [{ function = "recreate", role = "roles/iam.serviceAccountUser", member = "serviceAccount:pitstop-recreate@demo-project.iam.gserviceaccount.com" }]
        subnetwork      = []
      }
    }
  }
}

variables {
  state                = { bucket = "demo-terraform", prefix = "pitstop" }
  checkpoint_buckets   = ["a", "b"]
  fine_grained_buckets = ["b"]
  tpu_service_accounts = ["trainer@demo-project.iam.gserviceaccount.com"]
}

run "grants_what_the_installation_says" {
  command = plan

  assert {
    condition = output.grants == tolist([
      "a checkpoint roles/storage.objectUser", "a recreate roles/storage.bucketViewer", "b checkpoint roles/storage.objectUser",
      "b recreate roles/storage.bucketViewer", "trainer@demo-project.iam.gserviceaccount.com recreate roles/iam.serviceAccountUser",
    ])
    error_message = "A grant is missing, or there is one too many."
  }

  assert {
    condition     = google_storage_bucket_iam_member.main["a recreate roles/storage.bucketViewer"].member == "serviceAccount:pitstop-recreate@demo-project.iam.gserviceaccount.com"
    error_message = "A grant is for another account than the installation says."
  }

  assert {
    condition     = { for key, grant in google_storage_bucket_iam_member.main : key => grant.condition[0].expression if length(grant.condition) > 0 } == { "a checkpoint roles/storage.objectUser" = "resource.name.endsWith(\"/pitstop-request.json\")" }
    error_message = "A grant holds under another condition than the installation says, or a bucket that takes no condition has one."
  }
}

run "a_bucket_that_is_not_listed" {
  command = plan

  variables {
    fine_grained_buckets = ["c"]
  }

  expect_failures = [var.fine_grained_buckets]
}

run "a_key_that_the_state_has_not" {
  command = plan

  variables {
    state = { bucket = "demo-terraform", prefix = "pitstop", workspace = "prod" }
  }

  expect_failures = [var.state]
}

run "an_installation_that_only_watches" {
  command = plan

  override_data {
    target = data.terraform_remote_state.pitstop
    values = { outputs = { training_grants = { bucket = [], service_account = [], subnetwork = [] } } }
  }

  expect_failures = [check.allowed]
}

run "a_state_of_something_else" {
  command = plan

  override_data {
    target = data.terraform_remote_state.pitstop
    values = { outputs = { network = "default" } }
  }

  expect_failures = [data.terraform_remote_state.pitstop]
}
