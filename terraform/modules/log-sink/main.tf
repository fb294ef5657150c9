locals {
  sinks = merge([
    for project in var.project_ids : {
      for source, filter in var.filters : "${project}/${source}" => { project = project, source = source, filter = filter }
    }
  ]...)
}

resource "google_logging_project_sink" "main" {
  for_each = local.sinks

  project     = each.value.project
  name        = "${var.prefix}${each.value.source}"
  description = "Pitstop reads ${each.value.source} here."
  destination = "pubsub.googleapis.com/${var.topic}"
  filter      = each.value.filter

  unique_writer_identity = true
}

# IAM refuses a grant to an account that it does not know. A project's first sink makes the account that writes for all its sinks, and IAM
# takes a while to know it.
resource "time_sleep" "writers" {
  create_duration = "60s"
  triggers        = { projects = join(" ", sort(var.project_ids)) } # a project has one writer, however many sinks it gets later

  depends_on = [google_logging_project_sink.main]
}

# One binding for the whole topic, and no grant per sink. Cloud Logging gives all sinks of a project the same writer. A grant that was deleted
# together with one sink would take the others' right to publish with it, and Google would drop their entries without a word.
resource "google_pubsub_topic_iam_binding" "publishers" {
  project = split("/", var.topic)[1]
  topic   = var.topic
  role    = "roles/pubsub.publisher"
  members = setunion(compact(values(google_logging_project_sink.main)[*].writer_identity), var.publishers)

  lifecycle {
    precondition {
      condition     = alltrue([for sink in values(google_logging_project_sink.main) : startswith(sink.writer_identity, "serviceAccount:")])
      error_message = "Cloud Logging named no writer for ${join(", ", [for key, sink in google_logging_project_sink.main : key if !startswith(sink.writer_identity, "serviceAccount:")])}. Wait a minute and apply again. If the message stays, delete that sink with gcloud logging sinks delete, and apply again."
    }
  }

  depends_on = [time_sleep.writers]
}
