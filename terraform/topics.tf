# Every topic once. Its name is written in main.tf, beside the function that it leads to, and nowhere else.

resource "google_pubsub_topic" "main" {
  for_each = local.topics

  project = var.project_id
  name    = "${var.prefix}${each.value}"
  labels  = local.labels

  kms_key_name = var.kms_key

  # What was acknowledged by mistake can be had again for a week. Ticks are good for nothing after minutes.
  message_retention_duration = each.value == local.ticks ? "600s" : "604800s"

  depends_on = [google_project_service.main]
}

locals {
  ticks = local.functions.patrol.topic

  # Full names, of what a plan knows already: where a variable of a function that is there waits for a topic to be made, as when
  # notify is added, the provider contradicts its own plan, and the apply ends.
  topic = { for name, t in google_pubsub_topic.main : name => "projects/${t.project}/topics/${t.name}" }
}

resource "google_cloud_scheduler_job" "tick" {
  project     = var.project_id
  region      = var.region
  name        = "${var.prefix}pitstop-patrol"
  description = "One tick a minute: patrol reads the truth from the API."
  schedule    = "* * * * *"
  time_zone   = "Etc/UTC"

  pubsub_target {
    topic_name = google_pubsub_topic.main[local.ticks].id
    attributes = { every = "minute" } # a message has to hold something
  }

  # Who pauses patrol means it: a job that says nothing of that is resumed by the next apply, in later releases of the provider.
  lifecycle {
    ignore_changes = [paused]
  }

  # The first tick finds a function that may read what it needs, and a way back for the canary that it writes.
  depends_on = [
    module.function,
    module.log_sink,
    google_firestore_database.ledger,
    google_firestore_database.secrets,
    google_project_iam_member.ledger,
    google_project_iam_member.secrets,
    google_project_iam_member.logs,
    google_project_iam_member.tpu,
  ]
}
