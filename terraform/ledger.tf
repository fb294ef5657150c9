# The ledger, a second database for values that most readers of the ledger must not read, and a third one for the function that must not
# write into the ledger. All are named Firestore databases, never the project's default one. A database that an earlier destroy left behind
# has to be imported: see "Leave" in the README.

locals {
  # The ledger, the values of metadata, and what notify told people. Firestore's grants cover a whole database. The last one is there without
  # notify too. Otherwise an owner who takes notify away and adds it again would have to import it.
  databases = { ledger = "${var.prefix}pitstop", secrets = "${var.prefix}pitstop-secrets", told = "${var.prefix}pitstop-told" }

  # The collections of each database with documents that have a body, and those whose documents expire.
  bodies = {
    ledger  = ["archive", "brake", "canary", "deployment", "parked", "pause", "specs", "stockouts", "subjects", "workloads"]
    secrets = ["values"]
    told    = ["told"]
  }
  expiring = { ledger = ["archive", "brake", "stockouts"], secrets = ["values"], told = ["told"] }
}

resource "google_firestore_database" "main" {
  for_each = local.databases

  project         = var.project_id
  name            = each.value
  location_id     = coalesce(var.ledger_location, var.region)
  type            = "FIRESTORE_NATIVE"
  deletion_policy = var.ledger_deletion_policy

  # Only the ledger holds budgets, notices and open incidents. Firestore keeps an hour of versions by default, and a week with this.
  point_in_time_recovery_enablement = each.key == "ledger" ? "POINT_IN_TIME_RECOVERY_ENABLED" : "POINT_IN_TIME_RECOVERY_DISABLED"
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

# The body of a document holds an incident's timeline, a workload's outbox, or values that may be secrets. No query filters by it. An index
# over it would cost as much as the document, and hold a second copy of the secrets.
resource "google_firestore_field" "body" {
  for_each = merge([for database, collections in local.bodies : { for c in collections : "${database}/${c}" => { database = database, collection = c } }]...)

  project    = var.project_id
  database   = google_firestore_database.main[each.value.database].name
  collection = each.value.collection
  field      = "body"

  index_config {}

  # The exemption is deleted together with its database, and otherwise stays.
  deletion_policy = var.ledger_deletion_policy

  lifecycle {
    ignore_changes = [ttl_config] # documents expire by another field
  }
}

# The row of an archived incident is what lists show of it. No query filters by it either; the rank beside it, by which pages are read, is indexed.
resource "google_firestore_field" "row" {
  project    = var.project_id
  database   = google_firestore_database.main["ledger"].name
  collection = "archive"
  field      = "row"

  index_config {}

  deletion_policy = var.ledger_deletion_policy
}

# A document that may be forgotten has a time of expiry, and Firestore deletes it within a day after that. These times only grow, so an
# index over them would concentrate all writes in one place. Patrol postpones the expiry of values while a workload names them.
resource "google_firestore_field" "expires" {
  for_each = merge([for database, collections in local.expiring : { for c in collections : "${database}/${c}" => { database = database, collection = c } }]...)

  project    = var.project_id
  database   = google_firestore_database.main[each.value.database].name
  collection = each.value.collection
  field      = "expires"

  index_config {}
  ttl_config {}

  deletion_policy = var.ledger_deletion_policy
}
