# The console: pages in a browser, after Google's own sign-in. One function is deployed twice. The viewers' service only reads the ledger. The
# operators' service may also publish orders, on a topic of its own, and write nothing. It is off until `console` names somebody.

locals {
  consoles = { for who, members in var.console : who => members if length(members) > 0 }

  console_service = { for who in keys(local.consoles) : who => "${var.prefix}console-${who}" }

  # One build makes the image of each service.
  console_image = { for who, name in local.console_service : who => "${var.region}-docker.pkg.dev/${split("/", local.docker_repository)[1]}/${split("/", local.docker_repository)[5]}/${name}" }

  # The sign-in signs each request for the one service that it is for.
  # https://cloud.google.com/iap/docs/signed-headers-howto
  console_environment = { for who, name in local.console_service : who => merge(
    { for env, value in merge(local.environment.every, local.environment.decides) : env => value if value != "" },
    { IAP_AUDIENCE = "/projects/${local.project_number}/locations/${var.region}/services/${name}" },
    { for env, topic in { ORDERS_TOPIC = local.functions.order.topic } : env => local.topic[topic] if who == "operators" },
  ) }

  console_members = merge([for who, members in local.consoles : { for m in members : "${who}/${m}" => { who = who, member = m } }]...)
}

resource "google_storage_bucket_object" "console" {
  count = length(local.consoles) > 0 ? 1 : 0

  bucket       = google_storage_bucket.archives.name
  name         = "${var.prefix}console-${filesha256("${local.archive_directory}/console.zip")}.zip"
  source       = "${local.archive_directory}/console.zip"
  content_type = "application/zip"

  # Otherwise Terraform would look for changes at the path in the state, which may be a path of another machine.
  source_md5hash = filemd5("${local.archive_directory}/console.zip")

  lifecycle {
    create_before_destroy = true
    ignore_changes        = [source]
  }
}

# The resource of Cloud Functions has no sign-in, so the console is a service of Cloud Run that is built from the archive of a function.
resource "google_cloud_run_v2_service" "console" {
  for_each = local.consoles

  project             = var.project_id
  location            = var.region
  name                = local.console_service[each.key]
  description         = "Pitstop: the console for ${each.key}"
  labels              = merge(local.labels, { function = "console" })
  ingress             = "INGRESS_TRAFFIC_ALL" # a browser comes from anywhere; the sign-in decides
  iap_enabled         = true
  deletion_protection = false # it holds nothing

  build_config {
    source_location = "gs://${google_storage_bucket_object.console[0].bucket}/${google_storage_bucket_object.console[0].name}"
    function_target = "ServeConsole"
    image_uri       = local.console_image[each.key]
    base_image      = "go126" # with the stack that Google runs it on
    service_account = google_service_account.build.name
  }

  template {
    service_account                  = google_service_account.function[each.key].email
    timeout                          = "60s"
    max_instance_request_concurrency = 40

    scaling {
      max_instance_count = 3
    }

    containers {
      image = local.console_image[each.key]

      resources {
        limits = {
          cpu    = "1"
          memory = "512Mi"
        }
      }

      dynamic "env" {
        for_each = local.console_environment[each.key]

        content {
          name  = env.key
          value = env.value
        }
      }
    }
  }

  depends_on = [
    time_sleep.build,
    google_firestore_database.main,
  ]
}

# The sign-in calls the service as its agent, and nobody else may.
resource "google_project_service_identity" "iap" {
  provider = google-beta
  count    = length(local.consoles) > 0 ? 1 : 0

  project = var.project_id
  service = "iap.googleapis.com"

  depends_on = [time_sleep.apis]
}

resource "google_cloud_run_v2_service_iam_member" "console" {
  for_each = local.consoles

  project  = var.project_id
  location = var.region
  name     = google_cloud_run_v2_service.console[each.key].name
  role     = "roles/run.invoker"
  member   = "serviceAccount:service-${local.project_number}@gcp-sa-iap.iam.gserviceaccount.com"

  depends_on = [google_project_service_identity.iap]
}

# What the sign-in takes of the project: without an organization it knows nobody by itself.
data "google_project" "console" {
  count = length(local.consoles) > 0 ? 1 : 0

  project_id = var.project_id

  depends_on = [time_sleep.apis]
}

# Who may sign in.
resource "google_iap_web_cloud_run_service_iam_member" "console" {
  for_each = local.console_members

  project                = var.project_id
  location               = var.region
  cloud_run_service_name = google_cloud_run_v2_service.console[each.value.who].name
  role                   = "roles/iap.httpsResourceAccessor"
  member                 = each.value.member
}

# Only the operators' console may publish an order. Whoever may can give one in anybody's name.
resource "google_pubsub_topic_iam_member" "orders" {
  for_each = toset([for who in keys(local.consoles) : who if who == "operators"])

  project = var.project_id
  topic   = google_pubsub_topic.main[local.functions.order.topic].name
  role    = "roles/pubsub.publisher"
  member  = google_service_account.function[each.key].member
}
