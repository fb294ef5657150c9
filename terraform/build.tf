# The bucket that keeps the archives, and the account that builds functions from them.

resource "google_storage_bucket" "archives" {
  project = var.project_id
  # Another region makes another bucket, and Terraform uploads the archives there again. A bucket's name may have 63 characters, so a hash
  # stands for the region.
  name     = "${var.project_id}-${var.prefix}pitstop-archives-${substr(sha256(var.region), 0, 6)}"
  location = var.region
  labels   = local.labels

  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  dynamic "encryption" {
    for_each = var.kms_key[*]

    content {
      default_kms_key_name = encryption.value
    }
  }

  # scripts/package makes the archives from the sources at any time, so the bucket holds no other copy of anything.
  force_destroy = true
  soft_delete_policy {
    retention_duration_seconds = 0
  }

  depends_on = [time_sleep.apis, time_sleep.key]
}

# Builds run as an account of their own. The project's default account may edit everything.
resource "google_service_account" "build" {
  project      = var.project_id
  account_id   = "pitstop-${var.prefix}build"
  display_name = "Pitstop builds its functions"

  depends_on = [time_sleep.apis]
}

# A build needs two things of the project. It writes its log, and Cloud Logging takes that grant on no smaller place. It also reads Cloud
# Functions' copy of the archives. Google makes the bucket of these copies with the first function, so no policy of the bucket can be
# written before. It holds the sources of every function in the project and region, so a condition names the objects of Pitstop's functions.
resource "google_project_iam_member" "build" {
  for_each = {
    "roles/logging.logWriter"    = null
    "roles/storage.objectViewer" = local.own_sources
  }

  project = var.project_id
  role    = each.key
  member  = google_service_account.build.member

  dynamic "condition" {
    for_each = each.value[*]

    content {
      title      = "what Cloud Functions builds in ${var.region}"
      expression = condition.value
    }
  }
}

# Images go into a repository that Terraform makes. Cloud Functions would make its own, gcf-artifacts, with the first function. Artifact
# Registry does not support conditions on names (https://cloud.google.com/iam/docs/conditions-resource-attributes), so the first build
# could write there only by a grant on the whole project.
resource "google_artifact_registry_repository" "images" {
  count = var.docker_repository == null ? 1 : 0

  project       = var.project_id
  location      = var.region
  repository_id = "${var.prefix}pitstop"
  description   = "Images of Pitstop's functions."
  format        = "DOCKER"
  labels        = local.labels

  # Each build leaves an image, and Cloud Run serves from a copy. The last images stay for two reasons: a changed environment starts the
  # function from its image again, and a bad release may have to go back.
  cleanup_policies {
    id     = "keep-the-last"
    action = "KEEP"
    most_recent_versions {
      keep_count = 3
    }
  }
  cleanup_policies {
    id     = "delete-after-a-month"
    action = "DELETE"
    condition {
      tag_state  = "ANY"
      older_than = "2592000s"
    }
  }

  depends_on = [time_sleep.apis]
}

resource "google_artifact_registry_repository_iam_member" "build" {
  repository = local.docker_repository
  role       = "roles/artifactregistry.writer"
  member     = google_service_account.build.member

  depends_on = [time_sleep.apis]
}

# The build reads the archives.
resource "google_storage_bucket_iam_member" "build" {
  bucket = google_storage_bucket.archives.name
  role   = "roles/storage.objectViewer"
  member = google_service_account.build.member
}

locals {
  # The name is put together from inputs, so that a plan knows it before the repository exists.
  docker_repository = coalesce(var.docker_repository, one([
    for r in google_artifact_registry_repository.images : "projects/${r.project}/locations/${r.location}/repositories/${r.repository_id}"
  ]))

  # Cloud Functions keeps the archive of a function under the function's name. The condition includes notify from the start, so that adding
  # it later changes no grant. It names the bucket itself because a build may list it.
  sources_bucket = "projects/_/buckets/gcf-v2-sources-${local.project_number}-${var.region}"
  own_sources = join(" || ", concat(
    ["resource.name == \"${local.sources_bucket}\""],
    [for name in keys(local.functions) : "resource.name.startsWith(\"${local.sources_bucket}/objects/${var.prefix}${name}/\")"],
  ))

  # Pub/Sub's agent has the number in its name. It stays as it is when anything else changes, so no plan makes the grants of that agent anew.
  # Every other source needs a permission that this deployment does not need otherwise, or changes with the region.
  project_number = replace(google_project_service_identity.agent["pubsub.googleapis.com"].email, "/^service-([0-9]+)@.*$/", "$1")
}
