# Cloud Logging may answer without a writer for a new sink. A binding without it would be refused in words that nobody understands. The run has
# a file and so a state of its own, because a sink that exists keeps its writer.

mock_provider "google" {
  mock_resource "google_logging_project_sink" {
    defaults = { writer_identity = "" }
  }
}

mock_provider "time" {}

variables {
  project_ids = ["training-a"]
  topic       = "projects/demo-project/topics/log-events"
  filters     = { crew = "log_id(\"pitstop-crew\")" }
}

run "a_sink_without_a_writer" {
  expect_failures = [google_pubsub_topic_iam_binding.publishers]
}
