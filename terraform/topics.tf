# Every topic once. Only main.tf states its name, beside the function that reads it.

resource "google_pubsub_topic" "main" {
  for_each = local.topics

  project = var.project_id
  name    = "${var.prefix}${each.value}"
  labels  = local.labels

  kms_key_name = var.kms_key

  # A message that was acknowledged by mistake can be replayed for a week. Ticks are useless after minutes.
  message_retention_duration = each.value == local.ticks ? "600s" : "604800s"

  depends_on = [time_sleep.apis, time_sleep.key]
}

locals {
  ticks = local.functions.patrol.topic

  # Full names, put together from inputs so that a plan knows them. When notify is added, an existing function gets the name of a new
  # topic. If that name were known only after apply, the provider would contradict its own plan and the apply would fail.
  topic = { for name, t in google_pubsub_topic.main : name => "projects/${t.project}/topics/${t.name}" }
}

resource "google_cloud_scheduler_job" "tick" {
  project     = var.project_id
  region      = var.region
  name        = "${var.prefix}pitstop-patrol"
  description = "One tick a minute: patrol reads the state of all TPUs from the API."
  schedule    = "* * * * *"
  time_zone   = "Etc/UTC"

  pubsub_target {
    topic_name = google_pubsub_topic.main[local.ticks].id
    attributes = { every = "minute" } # Pub/Sub refuses an empty message
  }

  # An operator who pauses patrol means it. Without this, later releases of the provider resume the job at the next apply.
  lifecycle {
    ignore_changes = [paused]
  }

  # At the first tick patrol may read all that it needs, and the sinks bring back the canary that it writes.
  depends_on = [
    time_sleep.grants,
    module.function,
    google_firestore_database.main,
  ]
}
