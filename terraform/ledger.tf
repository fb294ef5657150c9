# The ledger, and beside it a second database for what not everybody may read who reads the ledger. Both are Firestore databases of our
# own, never the project's default one.

resource "google_firestore_database" "ledger" {
  project         = var.project_id
  name            = local.database
  location_id     = coalesce(var.ledger_location, var.region)
  type            = "FIRESTORE_NATIVE"
  deletion_policy = var.ledger_deletion_policy

  # Budgets, notices and open incidents are nowhere else: one minute of an hour ago can be had back, and a week with this.
  point_in_time_recovery_enablement = "POINT_IN_TIME_RECOVERY_ENABLED"
  delete_protection_state           = var.ledger_deletion_policy == "DELETE" ? "DELETE_PROTECTION_DISABLED" : "DELETE_PROTECTION_ENABLED"

  dynamic "cmek_config" {
    for_each = var.kms_key[*]

    content {
      kms_key_name = cmek_config.value
    }
  }

  # It stays where it is when the functions move, and under the key that it was made with: nothing moves a database, or gives it another.
  lifecycle {
    ignore_changes = [location_id, cmek_config]
  }

  depends_on = [google_project_service.main]
}

# The body of a document holds an incident's timeline and a workload's outbox. Nobody asks for documents by it, and an
# index over it would cost as much as the document.
resource "google_firestore_field" "body" {
  for_each = toset(["archive", "brake", "canary", "deployment", "parked", "pause", "specs", "stockouts", "subjects", "told", "workloads"])

  project    = var.project_id
  database   = google_firestore_database.ledger.name
  collection = each.value
  field      = "body"

  index_config {}

  # The exemption goes with its database, and stays with one that stays.
  deletion_policy = var.ledger_deletion_policy

  lifecycle {
    ignore_changes = [ttl_config] # documents expire by another field
  }
}

# What may be forgotten says when, and Firestore deletes it within a day after that. An index over times that all grow
# would be written to in one place.
resource "google_firestore_field" "expires" {
  for_each = toset(["archive", "brake", "stockouts", "told"])

  project    = var.project_id
  database   = google_firestore_database.ledger.name
  collection = each.value
  field      = "expires"

  index_config {}
  ttl_config {}

  deletion_policy = var.ledger_deletion_policy
}

# The values of TPUs' metadata, which may be secrets. Grants are made on a whole database, so they are in one of their own.
resource "google_firestore_database" "secrets" {
  project         = var.project_id
  name            = local.secrets_database
  location_id     = coalesce(var.ledger_location, var.region)
  type            = "FIRESTORE_NATIVE"
  deletion_policy = var.ledger_deletion_policy

  # What has expired can be had back by nobody.
  point_in_time_recovery_enablement = "POINT_IN_TIME_RECOVERY_DISABLED"
  delete_protection_state           = var.ledger_deletion_policy == "DELETE" ? "DELETE_PROTECTION_DISABLED" : "DELETE_PROTECTION_ENABLED"

  dynamic "cmek_config" {
    for_each = var.kms_key[*]

    content {
      kms_key_name = cmek_config.value
    }
  }

  lifecycle {
    ignore_changes = [location_id, cmek_config]
  }

  depends_on = [google_project_service.main]
}

# Values are read by key alone: an index over them would be a second copy.
resource "google_firestore_field" "values" {
  project    = var.project_id
  database   = google_firestore_database.secrets.name
  collection = "values"
  field      = "body"

  index_config {}

  deletion_policy = var.ledger_deletion_policy

  lifecycle {
    ignore_changes = [ttl_config] # documents expire by another field
  }
}

# Patrol moves this time on while a workload names the values.
resource "google_firestore_field" "values_expire" {
  project    = var.project_id
  database   = google_firestore_database.secrets.name
  collection = "values"
  field      = "expires"

  index_config {}
  ttl_config {}

  deletion_policy = var.ledger_deletion_policy
}
