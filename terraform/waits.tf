# Google answers that an API, an agent, a grant or a metric exists before all of its servers know. A first apply would stop there.
# So each wait here stands between such a change and the first thing that needs it. A wait has an upper bound, and it happens
# once: it repeats only when its trigger changes, and never because a function is deployed again.

locals {
  # Whether Terraform allows the agents to use the customer's key.
  grants_key = var.kms_key != null && var.kms_grants

  # The agents that encrypt and decrypt with the customer's key, by their service.
  key_users = local.grants_key ? {
    firestore = google_project_service_identity.agent["firestore.googleapis.com"].member
    pubsub    = google_project_service_identity.agent["pubsub.googleapis.com"].member
    storage   = data.google_storage_project_service_account.agent[0].member
  } : {}
}

# An API that was just enabled answers with SERVICE_DISABLED for up to a minute.
resource "time_sleep" "apis" {
  create_duration = "60s"
  triggers        = { services = join(" ", sort(keys(google_project_service.main))) }

  depends_on = [google_project_service.main]
}

# Enabling an API does not create its agent: Google would do so at the first use. IAM refuses a grant to an account that does not exist.
resource "google_project_service_identity" "agent" {
  provider = google-beta
  for_each = toset(concat(["pubsub.googleapis.com"], local.grants_key ? ["firestore.googleapis.com"] : []))

  project = var.project_id
  service = each.value

  depends_on = [time_sleep.apis]
}

# To ask Cloud Storage for its agent creates it.
data "google_storage_project_service_account" "agent" {
  count = local.grants_key ? 1 : 0

  project = var.project_id

  depends_on = [time_sleep.apis]
}

# IAM takes up to a minute to know a new agent.
resource "time_sleep" "agents" {
  create_duration = "60s"
  triggers        = { agents = join(" ", sort(keys(google_project_service_identity.agent))) }

  depends_on = [google_project_service_identity.agent]
}

resource "google_kms_crypto_key_iam_member" "agent" {
  for_each = local.key_users

  crypto_key_id = var.kms_key
  role          = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
  member        = each.value

  # A later apply may know an agent only after this plan. To make its grant again would lock the key for minutes.
  lifecycle {
    ignore_changes = [member]
  }

  depends_on = [time_sleep.agents]
}

# Databases, topics and the bucket are refused until the grants on the key hold, which takes a minute and mostly less than two.
resource "time_sleep" "key" {
  count = local.grants_key ? 1 : 0

  create_duration = "120s"
  triggers        = { key = var.kms_key }

  depends_on = [google_kms_crypto_key_iam_member.agent]
}

# A build fails where its account may not read the archive or store the image yet. IAM promises two minutes for a grant in most
# cases. The agents of Cloud Functions, Cloud Build and Artifact Registry receive their own roles meanwhile.
resource "time_sleep" "build" {
  create_duration = "120s"
  triggers        = { repository = local.docker_repository, sources = local.sources_bucket }

  depends_on = [
    google_artifact_registry_repository_iam_member.build,
    google_project_iam_member.build,
    google_storage_bucket_iam_member.build,
  ]
}

# Patrol writes an ERROR line for each call that IAM refuses, and more than three of them open an alert. So the first tick waits for the grants.
resource "time_sleep" "grants" {
  create_duration = "120s"
  triggers        = { region = var.region } # the job is made once in a region

  depends_on = [
    google_project_iam_member.clusters,
    google_project_iam_member.database,
    google_project_iam_member.logs,
    google_project_iam_member.tpu,
    module.log_sink,
  ]
}

# Cloud Monitoring refuses an alert on a metric that it does not know yet, "for up to 10 minutes" in its own words. The functions are built
# meanwhile, so that a first apply becomes longer by the difference alone.
resource "time_sleep" "metrics" {
  create_duration = "600s"
  triggers        = { metrics = join(" ", sort(values(local.metric))) }

  depends_on = [google_logging_metric.counter, google_logging_metric.distribution]
}
