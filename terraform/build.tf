# Where archives are kept, and who builds functions from them.

resource "google_storage_bucket" "archives" {
  project = var.project_id
  # Another region makes another bucket, and so uploads the archives anew. The region is not spelled out, because the name of
  # a bucket has 63 characters at most.
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

  # Archives can be made again from the sources at any time, so nothing is lost with the bucket.
  force_destroy = true
  soft_delete_policy {
    retention_duration_seconds = 0
  }

  depends_on = [google_project_service.main]
}

# Builds run as an account of their own and not as the project's default one, which may edit everything.
resource "google_service_account" "build" {
  project      = var.project_id
  account_id   = "pitstop-${var.prefix}build"
  display_name = "Pitstop builds its functions"

  depends_on = [google_project_service.main]
}

# What a build needs of the project: its log, which Cloud Logging keeps nowhere below it, and the archives of these very functions where
# Cloud Functions copies them to. That bucket is there from the first function on, and every function of the project and region has its
# sources in it. So its own policy cannot be written before, and a condition names what is ours.
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

# Images go into a repository of our own. The one that Cloud Functions would make, gcf-artifacts, comes with the first
# function, and Artifact Registry is no service that knows conditions on names
# (https://cloud.google.com/iam/docs/conditions-resource-attributes): to let the first build write there takes a grant on the
# whole project.
resource "google_artifact_registry_repository" "images" {
  count = var.docker_repository == null ? 1 : 0

  project       = var.project_id
  location      = var.region
  repository_id = "${var.prefix}pitstop"
  description   = "Images of Pitstop's functions."
  format        = "DOCKER"
  labels        = local.labels

  # Each build leaves an image, and what serves has been copied by Cloud Run. The last ones stay: a function whose
  # environment changes is started from its image again, and one that went wrong may have to go back.
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

  depends_on = [google_project_service.main]
}

resource "google_artifact_registry_repository_iam_member" "build" {
  repository = local.docker_repository
  role       = "roles/artifactregistry.writer"
  member     = google_service_account.build.member

  depends_on = [google_project_service.main]
}

# It reads the archives.
resource "google_storage_bucket_iam_member" "build" {
  bucket = google_storage_bucket.archives.name
  role   = "roles/storage.objectViewer"
  member = google_service_account.build.member
}

locals {
  # Spelled out from what is known before it is made, so that a plan shows it.
  docker_repository = coalesce(var.docker_repository, one([
    for r in google_artifact_registry_repository.images : "projects/${r.project}/locations/${r.location}/repositories/${r.repository_id}"
  ]))

  # Cloud Functions keeps the archive of a function under its name; notify is among them, so that nothing changes when it comes. The bucket
  # itself is named for its listing, which a build may ask for.
  sources_bucket = "projects/_/buckets/gcf-v2-sources-${local.project_number}-${var.region}"
  own_sources = join(" || ", concat(
    ["resource.name == \"${local.sources_bucket}\""],
    [for name in keys(local.functions) : "resource.name.startsWith(\"${local.sources_bucket}/objects/${var.prefix}${name}/\")"],
  ))

  # Asked of our own bucket, because nothing else tells it without a right that nobody here needs otherwise.
  project_number = google_storage_bucket.archives.project_number
}
