# Who may see the console, who may give orders there, and that neither account writes. Nothing here talks to Google: the provider is made up.

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
  mock_data "google_project" {
    defaults = { org_id = "1", folder_id = "" }
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

run "nobody" {
  assert {
    condition = (
      length(google_cloud_run_v2_service.console) == 0 && length(google_iap_web_cloud_run_service_iam_member.console) == 0 && length(google_pubsub_topic_iam_member.orders) == 0 &&
      length(google_storage_bucket_object.console) == 0 && length(google_project_service_identity.iap) == 0 && length(output.console) == 0 &&
      !contains(keys(module.function), "order") && !contains(keys(google_pubsub_topic.main), "operator-orders") && !contains(keys(google_project_service.main), "iap.googleapis.com") &&
      length(setintersection(keys(google_service_account.function), ["order", "operators", "viewers"])) == 0
    )
    error_message = "Without anybody in console there is a service, a topic, an account, a grant or an API for it."
  }
}

run "viewers_alone" {
  variables {
    console = { viewers = ["group:team@example.com"] }
  }

  assert {
    condition = (
      keys(google_cloud_run_v2_service.console) == ["viewers"] && !contains(keys(module.function), "order") && length(google_pubsub_topic_iam_member.orders) == 0 &&
      length([for e in google_cloud_run_v2_service.console["viewers"].template[0].containers[0].env : e if e.name == "ORDERS_TOPIC"]) == 0
    )
    error_message = "Viewers can order something, or see nothing."
  }
}

run "both" {
  variables {
    console = { viewers = ["group:team@example.com"], operators = ["user:ada@example.com", "user:ben@example.com"] }
  }

  # The sign-in stands before each service, and only its agent calls it.
  assert {
    condition = alltrue([
      for who, s in google_cloud_run_v2_service.console :
      s.iap_enabled && s.ingress == "INGRESS_TRAFFIC_ALL" && !s.deletion_protection && s.template[0].containers[0].image == s.build_config[0].image_uri && s.build_config[0].function_target == "ServeConsole"
    ]) && toset([for grant in google_cloud_run_v2_service_iam_member.console : "${grant.role} ${grant.member}"]) == toset(["roles/run.invoker serviceAccount:service-123456789012@gcp-sa-iap.iam.gserviceaccount.com"])
    error_message = "A console can be reached past the sign-in, or is not what was built."
  }

  assert {
    condition = { for key, grant in google_iap_web_cloud_run_service_iam_member.console : key => "${grant.role} ${grant.cloud_run_service_name}" } == {
      "viewers/group:team@example.com" = "roles/iap.httpsResourceAccessor console-viewers"
      "operators/user:ada@example.com" = "roles/iap.httpsResourceAccessor console-operators"
      "operators/user:ben@example.com" = "roles/iap.httpsResourceAccessor console-operators"
    }
    error_message = "Somebody else may sign in, or somebody may not."
  }

  # Each service knows the tokens that are for itself alone, and the variables that the function reads.
  assert {
    condition = alltrue([
      for who, s in google_cloud_run_v2_service.console :
      { for e in s.template[0].containers[0].env : e.name => e.value }.IAP_AUDIENCE == "/projects/123456789012/locations/us-central1/services/console-${who}" &&
      length(setsubtract([for e in s.template[0].containers[0].env : e.name], concat(jsondecode(file("tests/environment.json")).console.required, jsondecode(file("tests/environment.json")).console.optional))) == 0
    ])
    error_message = "A console believes tokens for another service, or is given what it does not read."
  }

  # Neither writes. Only the operators' account may publish, on one topic.
  assert {
    condition = { for key, role in google_project_iam_custom_role.database : key => join(" ", [for p in sort(role.permissions) : trimprefix(p, "datastore.entities.")]) if !contains(["secrets", "told"], split("/", key)[0]) && contains(["operators", "order", "viewers"], split("/", key)[1]) } == {
      "ledger/operators" = "get list"
      "ledger/order"     = "create get update"
      "ledger/viewers"   = "get list"
    }
    error_message = "A console writes, or the function order cannot."
  }

  assert {
    condition     = keys(google_pubsub_topic_iam_member.orders) == ["operators"] && google_pubsub_topic_iam_member.orders["operators"].topic == "operator-orders" && alltrue([for f in module.function : !contains(keys(f.publishes_to), "ORDERS_TOPIC")])
    error_message = "Another account than the operators' may publish an order."
  }
}

run "no_organization" {
  override_data {
    target = data.google_project.console
    values = { org_id = "", folder_id = "" }
  }

  variables {
    console = { viewers = ["user:ada@gmail.com"] }
  }

  expect_failures = [check.console]
}

run "everybody" {
  command = plan

  variables {
    console = { operators = ["allAuthenticatedUsers"] }
  }

  expect_failures = [var.console]
}

run "a_misspelt_key_of_console" {
  command = plan

  variables {
    console = { operator = ["user:ada@example.com"] }
  }

  expect_failures = [var.console]
}
