# The archive's name holds the hash of its content: a function is deployed again only when its archive has changed.
resource "google_storage_bucket_object" "archive" {
  bucket       = var.source_bucket
  name         = "${var.name}-${filesha256(var.archive)}.zip"
  source       = var.archive
  content_type = "application/zip"

  # Otherwise Terraform would look for changes at the path in the state, which may be a path of another machine.
  source_md5hash = filemd5(var.archive)

  lifecycle {
    # The former archive is deleted after the function is built from this one.
    create_before_destroy = true

    # The name stands for the content. A new path to the same archive would upload it again, and then delete the object with that name.
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
    service_account_email            = var.service_account
    ingress_settings                 = "ALLOW_INTERNAL_ONLY" # a push by Pub/Sub of the same project counts as internal
    available_memory                 = var.memory
    available_cpu                    = "1" # several messages at a time need a whole CPU, and so does a quick start
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
        version    = "latest" # an instance reads it when it starts
      }
    }
  }

  # There is no event_trigger. The subscription that comes with one has no dead letter, and its backoff and deadline cannot be set. It drops a
  # message that it could not deliver within a day. See delivery.tf.

  lifecycle {
    precondition {
      condition     = length(distinct(concat(keys(var.environment), keys(var.publishes_to), keys(var.secrets)))) == length(var.environment) + length(var.publishes_to) + length(var.secrets)
      error_message = "${var.name}: environment, publishes_to and secrets set the same variable twice."
    }
  }

  # Cloud Run refuses a function that may not read one of its secrets.
  depends_on = [time_sleep.secrets]
}
