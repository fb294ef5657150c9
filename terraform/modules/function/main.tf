# The archive is named by what is in it: a function is deployed anew exactly when its archive is another one.
resource "google_storage_bucket_object" "archive" {
  bucket       = var.source_bucket
  name         = "${var.name}-${filesha256(var.archive)}.zip"
  source       = var.archive
  content_type = "application/zip"

  # Else the path in the state would be read to look for changes, which may be another machine's.
  source_md5hash = filemd5(var.archive)

  lifecycle {
    # The one before goes when the function is built from this one.
    create_before_destroy = true

    # The name says what is in it. Another path to the same archive would upload it again, and then delete that very name.
    ignore_changes = [source]
  }
}

resource "google_cloudfunctions2_function" "main" {
  project     = var.project_id
  location    = var.region
  name        = var.name
  description = "Pitstop: ${var.entry_point}"
  labels      = var.labels

  build_config {
    runtime           = var.runtime
    entry_point       = var.entry_point
    service_account   = var.build_service_account
    docker_repository = var.docker_repository

    source {
      storage_source {
        bucket = google_storage_bucket_object.archive.bucket
        object = google_storage_bucket_object.archive.name
      }
    }
  }

  service_config {
    service_account_email            = google_service_account.runtime.email
    ingress_settings                 = "ALLOW_INTERNAL_ONLY" # Pub/Sub of the same project counts as internal
    available_memory                 = var.memory
    available_cpu                    = "1" # less is not allowed for more than one message at a time, and makes a start slow
    timeout_seconds                  = var.timeout_seconds
    max_instance_count               = var.max_instances
    max_instance_request_concurrency = var.concurrency
    environment_variables            = merge(var.environment, var.publishes_to)

    dynamic "secret_environment_variables" {
      for_each = var.secrets

      content {
        key        = secret_environment_variables.key
        project_id = element(split("/", secret_environment_variables.value), 1)
        secret     = element(split("/", secret_environment_variables.value), 3)
        version    = "latest" # as of the start of an instance
      }
    }
  }

  # No event_trigger: the subscription that comes with one has no dead letter, no backoff and no deadline of ours, and
  # drops what it could not deliver within a day. See delivery.tf.

  lifecycle {
    precondition {
      condition     = length(distinct(concat(keys(var.environment), keys(var.publishes_to), keys(var.secrets)))) == length(var.environment) + length(var.publishes_to) + length(var.secrets)
      error_message = "${var.name}: a variable is there twice in environment, publishes_to and secrets."
    }
  }

  # It does not start with a secret that it may not read.
  depends_on = [google_secret_manager_secret_iam_member.reader]
}
