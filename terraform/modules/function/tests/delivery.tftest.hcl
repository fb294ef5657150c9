# A message that cannot be handled must have somewhere to go, and only Pub/Sub may bring one.

mock_provider "google" {
  mock_resource "google_cloudfunctions2_function" {
    defaults = { service_config = { uri = "https://recreate.run.app" } }
  }
  mock_resource "google_service_account" {
    defaults = {
      email  = "mocked@demo-project.iam.gserviceaccount.com"
      member = "serviceAccount:mocked@demo-project.iam.gserviceaccount.com"
      name   = "projects/demo-project/serviceAccounts/mocked@demo-project.iam.gserviceaccount.com"
    }
  }
}

# A wait that is made up takes no time.
mock_provider "time" {}

variables {
  name                  = "recreate"
  entry_point           = "HandleRecreate"
  kms_key               = "projects/keys/locations/us-central1/keyRings/pitstop/cryptoKeys/pitstop"
  archive               = "./tests/delivery.tftest.hcl" # any file: what counts is its hash
  source_bucket         = "archives"
  service_account       = "pitstop-recreate@demo-project.iam.gserviceaccount.com"
  build_service_account = "projects/demo-project/serviceAccounts/build@demo-project.iam.gserviceaccount.com"
  project_id            = "demo-project"
  project_number        = "123456789012"
  region                = "us-central1"
  topic                 = "projects/demo-project/topics/recreate-requests"
  publishes_to          = { CHECKPOINT_TOPIC = "projects/demo-project/topics/checkpoint-requests" }
  environment           = { PROJECT_ID = "demo-project" }
  concurrency           = 5
}

run "keeps_what_it_cannot_handle" {
  assert {
    condition     = google_pubsub_subscription.main.dead_letter_policy[0].max_delivery_attempts == 20 && google_pubsub_subscription.main.dead_letter_policy[0].dead_letter_topic == google_pubsub_topic.dead_letter[0].id
    error_message = "After 20 attempts a message goes to the dead-letter topic."
  }

  assert {
    condition     = alltrue([for s in [google_pubsub_subscription.main, google_pubsub_subscription.dead_letter[0]] : s.expiration_policy[0].ttl == "" && s.message_retention_duration == "604800s"])
    error_message = "A subscription expires, or keeps less than 7 days."
  }

  assert {
    condition     = google_pubsub_subscription.dead_letter[0].ack_deadline_seconds == 600
    error_message = "Dead letters would be delivered again while they still are being brought back."
  }

  assert {
    condition     = google_pubsub_subscription.dead_letter[0].topic == google_pubsub_topic.dead_letter[0].id && google_pubsub_topic.dead_letter[0].kms_key_name == var.kms_key
    error_message = "Nobody keeps what comes to the dead-letter topic, or not under the customer's key."
  }

  assert {
    condition = (
      google_pubsub_topic_iam_member.agent_dead_letters[0].member == local.pubsub_agent && google_pubsub_topic_iam_member.agent_dead_letters[0].role == "roles/pubsub.publisher" &&
      google_pubsub_topic_iam_member.agent_dead_letters[0].topic == google_pubsub_topic.dead_letter[0].id &&
      google_pubsub_subscription_iam_member.agent_acknowledges[0].member == local.pubsub_agent && google_pubsub_subscription_iam_member.agent_acknowledges[0].role == "roles/pubsub.subscriber" &&
      google_pubsub_subscription_iam_member.agent_acknowledges[0].subscription == google_pubsub_subscription.main.name
    )
    error_message = "Without both grants Pub/Sub cannot put a message aside."
  }

  assert {
    condition     = google_pubsub_subscription.main.retry_policy[0].minimum_backoff == "10s" && google_pubsub_subscription.main.retry_policy[0].maximum_backoff == "600s"
    error_message = "The backoff goes from 10 s to 600 s."
  }

  assert {
    condition     = google_pubsub_subscription.main.ack_deadline_seconds > var.timeout_seconds && google_pubsub_subscription.main.ack_deadline_seconds <= 600
    error_message = "A message would be delivered again while it still is being handled."
  }
}

run "is_called_by_nobody_else" {
  assert {
    condition     = google_cloudfunctions2_function.main.service_config[0].ingress_settings == "ALLOW_INTERNAL_ONLY" && length(google_cloudfunctions2_function.main.event_trigger) == 0
    error_message = "The function can be reached from outside, or has a trigger beside its subscription."
  }

  assert {
    condition     = google_cloud_run_v2_service_iam_member.invoker.role == "roles/run.invoker" && google_cloud_run_v2_service_iam_member.invoker.member == google_service_account.invoker.member && google_cloud_run_v2_service_iam_member.invoker.name == "recreate"
    error_message = "Its invoker may call this function, and nobody else may."
  }

  assert {
    condition     = google_pubsub_subscription.main.push_config[0].oidc_token[0].audience == "https://recreate.run.app" && google_pubsub_subscription.main.push_config[0].push_endpoint == "https://recreate.run.app/recreate-requests" && google_pubsub_subscription.main.push_config[0].oidc_token[0].service_account_email == google_service_account.invoker.email && google_pubsub_subscription.main.topic == var.topic
    error_message = "Messages of the topic do not come to this service, with a token of its invoker."
  }

  assert {
    condition     = google_cloudfunctions2_function.main.service_config[0].service_account_email == "pitstop-recreate@demo-project.iam.gserviceaccount.com" && google_service_account.invoker.account_id == "pitstop-recreate-push" && google_cloudfunctions2_function.main.build_config[0].entry_point == "HandleRecreate"
    error_message = "The function does not act as its account, its invoker is no account of its own, or another entry point is served."
  }
}

run "publishes_where_it_is_told" {
  assert {
    condition     = length(time_sleep.secrets) == 0
    error_message = "A function without secrets waits for a grant that there is not."
  }

  assert {
    condition     = output.publishes_to == var.publishes_to && output.environment == merge(var.environment, var.publishes_to)
    error_message = "What the environment names and where the account may publish is not the same."
  }
}

run "reads_the_secrets_that_it_is_given" {
  variables {
    secrets = { TOKEN = "projects/other-project/secrets/token" }
  }

  assert {
    condition = one(google_cloudfunctions2_function.main.service_config[0].secret_environment_variables) == {
      key = "TOKEN", project_id = "other-project", secret = "token", version = "latest"
    } && !contains(keys(google_cloudfunctions2_function.main.service_config[0].environment_variables), "TOKEN")
    error_message = "A secret is not given as one."
  }

  assert {
    condition     = google_secret_manager_secret_iam_member.reader["TOKEN"].secret_id == "token" && google_secret_manager_secret_iam_member.reader["TOKEN"].project == "other-project" && google_secret_manager_secret_iam_member.reader["TOKEN"].role == "roles/secretmanager.secretAccessor" && length(google_secret_manager_secret_iam_member.reader) == 1
    error_message = "The function may not read its secret, or may read more."
  }

  assert {
    condition     = time_sleep.secrets[0].create_duration == "120s" && time_sleep.secrets[0].triggers == tomap(var.secrets)
    error_message = "The function starts before it may read its secret, or waits at every apply."
  }
}

run "archive_is_named_by_its_hash" {
  assert {
    condition     = google_storage_bucket_object.archive.name == "recreate-${filesha256("./tests/delivery.tftest.hcl")}.zip" && google_cloudfunctions2_function.main.build_config[0].source[0].storage_source[0].object == google_storage_bucket_object.archive.name
    error_message = "A function has to be deployed again exactly when its archive has changed."
  }
}

run "images_go_where_they_are_told" {
  command = plan

  variables {
    docker_repository = "projects/demo-project/locations/us-central1/repositories/images"
  }

  assert {
    condition     = google_cloudfunctions2_function.main.build_config[0].docker_repository == var.docker_repository
    error_message = "Images go to another repository than the one that the build account was granted on."
  }
}

run "ticks_are_not_kept" {
  command = plan

  variables {
    dead_letter     = false
    timeout_seconds = 180
  }

  assert {
    condition     = length(google_pubsub_subscription.main.dead_letter_policy) == 0 && length(google_pubsub_topic.dead_letter) == 0 && google_pubsub_subscription.main.message_retention_duration == "600s" && google_pubsub_subscription.main.expiration_policy[0].ttl == ""
    error_message = "Ticks are kept for 10 minutes and never aside, and their subscription never expires."
  }
}

run "refuses_what_would_fail_late" {
  command = plan

  variables {
    archive               = "./nowhere.zip"
    build_service_account = "build@demo-project.iam.gserviceaccount.com"
    docker_repository     = "projects/other-project/locations/us-central1/repositories/images"
    max_instances         = 0
    memory                = "lots"
    project_number        = "demo-project"
    publishes_to          = { CHECKPOINT_TOPIC = "checkpoint-requests" }
    runtime               = "nodejs22"
    timeout_seconds       = 600
    topic                 = "recreate-requests"
  }

  expect_failures = [
    var.archive, var.build_service_account, var.docker_repository, var.max_instances, var.memory, var.project_number,
    var.publishes_to, var.runtime, var.timeout_seconds, var.topic,
  ]
}
