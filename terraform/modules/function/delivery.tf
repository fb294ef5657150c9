locals {
  topic_name = element(split("/", var.topic), 3)
  uri        = google_cloudfunctions2_function.main.service_config[0].uri

  week        = "604800s"
  ten_minutes = "600s"
}

resource "google_pubsub_subscription" "main" {
  project = var.project_id
  name    = var.name
  topic   = var.topic
  labels  = var.labels

  ack_deadline_seconds       = var.timeout_seconds + 60
  message_retention_duration = var.dead_letter ? local.week : local.ten_minutes

  push_config {
    # The path shows the topic in the log of each request. The function serves every path.
    push_endpoint = "${local.uri}/${local.topic_name}"

    oidc_token {
      service_account_email = google_service_account.invoker.email
      audience              = local.uri
    }
  }

  retry_policy {
    minimum_backoff = "10s"
    maximum_backoff = "600s"
  }

  dynamic "dead_letter_policy" {
    for_each = google_pubsub_topic.dead_letter[*].id

    content {
      dead_letter_topic     = dead_letter_policy.value
      max_delivery_attempts = 20
    }
  }

  # By default Pub/Sub deletes a subscription after 31 days without use, so a quiet month would end the pipeline.
  expiration_policy {
    ttl = ""
  }

  depends_on = [
    google_cloud_run_v2_service_iam_member.invoker,
    google_service_account_iam_member.agent_mints_tokens,
    google_pubsub_topic_iam_member.agent_dead_letters,
  ]
}

resource "google_pubsub_topic" "dead_letter" {
  count = var.dead_letter ? 1 : 0

  project                    = var.project_id
  name                       = "${var.name}-dead-letters"
  labels                     = var.labels
  kms_key_name               = var.kms_key
  message_retention_duration = local.week
}

# No program reads this subscription in normal operation. An expiry would delete it unnoticed, and every later dead letter would be lost.
resource "google_pubsub_subscription" "dead_letter" {
  count = var.dead_letter ? 1 : 0

  project                    = var.project_id
  name                       = "${var.name}-dead-letters"
  topic                      = google_pubsub_topic.dead_letter[0].id
  labels                     = var.labels
  message_retention_duration = local.week

  # `pitstop redrive` handles several letters one after the other. With the default deadline, Pub/Sub would deliver the last one a second time.
  ack_deadline_seconds = 600

  expiration_policy {
    ttl = ""
  }
}
