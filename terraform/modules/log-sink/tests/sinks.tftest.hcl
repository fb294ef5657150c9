# Entries of every source in every watched project have to arrive, and no other account may publish on their topic.

mock_provider "google" {
  mock_resource "google_logging_project_sink" {
    defaults = { writer_identity = "serviceAccount:service-123456789012@gcp-sa-logging.iam.gserviceaccount.com" }
  }
}

mock_provider "time" {}

variables {
  project_ids = ["training-a", "training-b"]
  topic       = "projects/demo-project/topics/log-events"
  filters     = { crew = "log_id(\"pitstop-crew\")", canary = "log_id(\"pitstop-canary\")" }
  publishers  = ["serviceAccount:pitstop-patrol@demo-project.iam.gserviceaccount.com"]
}

run "one_sink_for_each_source_and_project" {
  assert {
    condition     = toset(keys(google_logging_project_sink.main)) == toset(["training-a/crew", "training-a/canary", "training-b/crew", "training-b/canary"])
    error_message = "A source of a project has no sink."
  }

  assert {
    condition     = alltrue([for sink in google_logging_project_sink.main : sink.unique_writer_identity && sink.destination == "pubsub.googleapis.com/projects/demo-project/topics/log-events"])
    error_message = "A sink writes as another account, or to another topic."
  }
}

run "only_its_writers_may_publish" {
  assert {
    condition = google_pubsub_topic_iam_binding.publishers.role == "roles/pubsub.publisher" && google_pubsub_topic_iam_binding.publishers.members == toset([
      "serviceAccount:service-123456789012@gcp-sa-logging.iam.gserviceaccount.com",
      "serviceAccount:pitstop-patrol@demo-project.iam.gserviceaccount.com",
    ])
    error_message = "An account that has to publish may not, or another account may."
  }
}

run "waits_for_a_new_writer_once" {
  assert {
    condition     = time_sleep.writers.create_duration == "60s" && time_sleep.writers.triggers == tomap({ projects = "training-a training-b" })
    error_message = "IAM may not know the writer yet, or every later sink waits again."
  }
}

run "refuses_what_would_send_everything_or_nothing" {
  command = plan

  variables {
    filters     = { everything = "" }
    project_ids = []
    topic       = "log-events"
  }

  expect_failures = [var.filters, var.project_ids, var.topic]
}
