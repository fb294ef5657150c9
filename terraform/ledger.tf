# The ledger, a second database for values that most readers of the ledger must not read, and a third one for the function that must not
# write into the ledger. All are named Firestore databases, never the project's default one. A database that an earlier destroy left behind
# has to be imported: see "Leave" in the README.

resource "google_firestore_database" "ledger" {
  project         = var.project_id
  name            = local.databases.ledger
  location_id     = coalesce(var.ledger_location, var.region)
  type            = "FIRESTORE_NATIVE"
  deletion_policy = var.ledger_deletion_policy

  # Only the ledger holds budgets, notices and open incidents. Firestore keeps an hour of versions by default, and a week with this.
  point_in_time_recovery_enablement = "POINT_IN_TIME_RECOVERY_ENABLED"
  delete_protection_state           = var.ledger_deletion_policy == "DELETE" ? "DELETE_PROTECTION_DISABLED" : "DELETE_PROTECTION_ENABLED"

  dynamic "cmek_config" {
    for_each = var.kms_key[*]

    content {
      kms_key_name = cmek_config.value
    }
  }

  # Firestore can neither move a database nor change its key. So it keeps both when the functions move or the key changes.
  lifecycle {
    ignore_changes = [location_id, cmek_config]
  }

  depends_on = [time_sleep.apis, time_sleep.key]
}

# The body of a document holds an incident's timeline and a workload's outbox. No query filters by it, and an index over it would cost
# as much as the document.
resource "google_firestore_field" "body" {
  for_each = toset(["archive", "brake", "canary", "deployment", "parked", "pause", "specs", "stockouts", "subjects", "workloads"])

  project    = var.project_id
  database   = google_firestore_database.ledger.name
  collection = each.value
  field      = "body"

  index_config {}

  # The exemption is deleted together with its database, and otherwise stays.
  deletion_policy = var.ledger_deletion_policy

  lifecycle {
    ignore_changes = [ttl_config] # documents expire by another field
  }
}

# A document that may be forgotten has a time of expiry, and Firestore deletes it within a day after that. These times only grow, so an
# index over them would concentrate all writes in one place.
resource "google_firestore_field" "expires" {
  for_each = toset(["archive", "brake", "stockouts"])

  project    = var.project_id
  database   = google_firestore_database.ledger.name
  collection = each.value
  field      = "expires"

  index_config {}
  ttl_config {}

  deletion_policy = var.ledger_deletion_policy
}

# The values of TPUs' metadata, which may be secrets. Firestore's grants cover a whole database, so these values have a database of their own.
resource "google_firestore_database" "secrets" {
  project         = var.project_id
  name            = local.databases.secrets
  location_id     = coalesce(var.ledger_location, var.region)
  type            = "FIRESTORE_NATIVE"
  deletion_policy = var.ledger_deletion_policy

  # Nobody can restore a value that has expired.
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

  depends_on = [time_sleep.apis, time_sleep.key]
}

# Functions read values by key only, and an index would hold a second copy.
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

# Patrol postpones this expiry while a workload names the values.
resource "google_firestore_field" "values_expire" {
  project    = var.project_id
  database   = google_firestore_database.secrets.name
  collection = "values"
  field      = "expires"

  index_config {}
  ttl_config {}

  deletion_policy = var.ledger_deletion_policy
}

# What people were told. Only notify calls addresses outside, so it writes here and only reads the ledger. The database is there without notify
# too. Otherwise an owner who takes notify away and adds it again would have to import it.
resource "google_firestore_database" "told" {
  project         = var.project_id
  name            = local.databases.told
  location_id     = coalesce(var.ledger_location, var.region)
  type            = "FIRESTORE_NATIVE"
  deletion_policy = var.ledger_deletion_policy

  # Without it the news of open incidents would go out a second time, and nothing else would happen.
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

  depends_on = [time_sleep.apis, time_sleep.key]
}

# Notify reads by key only.
resource "google_firestore_field" "told" {
  project    = var.project_id
  database   = google_firestore_database.told.name
  collection = "told"
  field      = "body"

  index_config {}

  deletion_policy = var.ledger_deletion_policy

  lifecycle {
    ignore_changes = [ttl_config] # documents expire by another field
  }
}

# A record expires long after the last message that can still come.
resource "google_firestore_field" "told_expire" {
  project    = var.project_id
  database   = google_firestore_database.told.name
  collection = "told"
  field      = "expires"

  index_config {}
  ttl_config {}

  deletion_policy = var.ledger_deletion_policy
}
