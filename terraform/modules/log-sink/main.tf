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

# One binding for the whole topic, and no grant per sink: Cloud Logging gives all sinks of a project the same writer, so a
# grant that goes with one sink would take the others' with it, and entries would get lost unsaid.
resource "google_pubsub_topic_iam_binding" "publishers" {
  project = split("/", var.topic)[1]
  topic   = var.topic
  role    = "roles/pubsub.publisher"
  members = setunion(values(google_logging_project_sink.main)[*].writer_identity, var.publishers)
}
