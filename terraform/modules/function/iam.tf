locals {
  # Pub/Sub pushes messages and stores dead letters as its agent in this project.
  pubsub_agent = "serviceAccount:service-${var.project_number}@gcp-sa-pubsub.iam.gserviceaccount.com"

  # The function acts as this account. The module lets it publish on its topics and read its secrets; the caller grants the rest.
  member = "serviceAccount:${var.service_account}"
}

# The account that Pub/Sub calls the function as.
resource "google_service_account" "invoker" {
  project      = var.project_id
  account_id   = "${var.account_prefix}${var.name}-push"
  display_name = "Pitstop pushes to ${var.name}"
}

# The function may publish on exactly the topics that its environment names.
resource "google_pubsub_topic_iam_member" "publisher" {
  for_each = var.publishes_to

  project = var.project_id
  topic   = each.value
  role    = "roles/pubsub.publisher"
  member  = local.member
}

# The function may read exactly the secrets that its environment holds.
resource "google_secret_manager_secret_iam_member" "reader" {
  for_each = var.secrets

  project   = element(split("/", each.value), 1)
  secret_id = element(split("/", each.value), 3)
  role      = "roles/secretmanager.secretAccessor"
  member    = local.member
}

# IAM promises two minutes for a grant in most cases. Without the wait a first deployment could fail after its build.
resource "time_sleep" "secrets" {
  count = length(var.secrets) > 0 ? 1 : 0

  create_duration = "120s"
  triggers        = var.secrets

  depends_on = [google_secret_manager_secret_iam_member.reader]
}

# The invoker may call this one service. Nothing waits for this grant or the next one: Pub/Sub repeats a push that was refused.
resource "google_cloud_run_v2_service_iam_member" "invoker" {
  project  = var.project_id
  location = var.region
  name     = google_cloudfunctions2_function.main.name
  role     = "roles/run.invoker"
  member   = google_service_account.invoker.member
}

# A push carries an identity token of the invoker, and the agent has to obtain that token. The role holds only this permission.
resource "google_service_account_iam_member" "agent_mints_tokens" {
  service_account_id = google_service_account.invoker.name
  role               = "roles/iam.serviceAccountOpenIdTokenCreator"
  member             = local.pubsub_agent
}

# For a dead letter the agent publishes the message on the dead-letter topic and acknowledges it here. Without both grants Pub/Sub delivers the
# message for ever, and reports nothing.
resource "google_pubsub_topic_iam_member" "agent_dead_letters" {
  count = var.dead_letter ? 1 : 0

  project = var.project_id
  topic   = google_pubsub_topic.dead_letter[0].id
  role    = "roles/pubsub.publisher"
  member  = local.pubsub_agent
}

resource "google_pubsub_subscription_iam_member" "agent_acknowledges" {
  count = var.dead_letter ? 1 : 0

  project      = var.project_id
  subscription = google_pubsub_subscription.main.name
  role         = "roles/pubsub.subscriber"
  member       = local.pubsub_agent
}
