# What each function's account may do beyond its own topics. permissions.json lists every permission with the call that
# needs it; a test holds that against the calls that the functions really make. Grants are made on the smallest thing that
# takes them: where that is a project, the API has none smaller.

locals {
  table = jsondecode(file("${path.module}/permissions.json"))

  # The rows that hold under what is allowed: a row without switches holds always.
  granted = [for r in local.table : r if length(r.switches) == 0 || length(setintersection(r.switches, var.allow)) > 0]

  # What an account may do in a watched project, and whether that changes a TPU.
  watching     = { for name in keys(local.functions) : name => sort(distinct([for r in local.granted : r.permission if r.account == name && r.on == "watched projects"])) }
  changes_tpus = { for name in keys(local.functions) : name => anytrue([for r in local.granted : r.account == name && startswith(r.permission, "tpu.") && length(r.switches) > 0]) }

  # What it may do in the second database.
  keeping = { for name in keys(local.functions) : name => sort(distinct([for r in local.granted : r.permission if r.account == name && r.on == "the second database"])) if contains([for r in local.granted : r.account if r.on == "the second database"], name) }

  creators = toset([for r in local.granted : r.account if r.permission == "iam.serviceAccounts.actAs"])

  # Who looks into buckets with checkpoints, who of them writes there too, and who may know no more than where they are.
  readers  = toset([for r in local.granted : r.account if r.on == "checkpoint_buckets" && startswith(r.permission, "storage.objects.")])
  writers  = toset([for r in local.granted : r.account if r.on == "checkpoint_buckets" && r.permission == "storage.objects.create"])
  locators = toset([for r in local.granted : r.account if r.on == "checkpoint_buckets" && r.permission == "storage.buckets.get"])

  each_watched = merge([for p in local.watched : { for name in keys(local.deployed) : "${p}/${name}" => { project = p, function = name } if length(local.watching[name]) > 0 }]...)
  policy       = var.policy_uri == "" ? null : regex("^gs://(?P<bucket>[^/]+)/(?P<object>.+)$", var.policy_uri)
}

# Whoever decides looks before anything follows. Only who acts, and only where that is allowed, may change a TPU.
resource "google_project_iam_member" "tpu" {
  for_each = local.each_watched

  project = each.value.project
  member  = module.function[each.value.function].member
  role = (
    var.tpu_roles == "custom" ? google_project_iam_custom_role.tpu[each.key].id :
    local.changes_tpus[each.value.function] ? "roles/tpu.admin" : "roles/tpu.viewer"
  )

  # From one sort of role to the other nobody is without both: a call that is refused then ends an incident.
  lifecycle {
    create_before_destroy = true
  }
}

resource "google_project_iam_custom_role" "tpu" {
  for_each = var.tpu_roles == "custom" ? local.each_watched : {}

  project     = each.value.project
  role_id     = "${replace(var.prefix, "-", "_")}pitstop_${each.value.function}"
  title       = "Pitstop: TPUs for ${each.value.function}"
  description = "Exactly the permissions of the calls that the function ${each.value.function} makes here."
  permissions = local.watching[each.value.function]
}

# Every function keeps the ledger, in this database alone.
resource "google_project_iam_member" "ledger" {
  for_each = local.deployed

  project = var.project_id
  role    = "roles/datastore.user"
  member  = module.function[each.key].member

  condition {
    title      = "the database ${local.database}"
    expression = "resource.name == \"projects/${var.project_id}/databases/${local.database}\""
  }
}

# The second database: patrol writes what it cannot read, and recreate alone reads it. No predefined role writes without reading, so
# these are custom ones.
resource "google_project_iam_member" "secrets" {
  for_each = local.keeping

  project = var.project_id
  role    = google_project_iam_custom_role.secrets[each.key].id
  member  = module.function[each.key].member

  condition {
    title      = "the database ${local.secrets_database}"
    expression = "resource.name == \"projects/${var.project_id}/databases/${local.secrets_database}\""
  }
}

resource "google_project_iam_custom_role" "secrets" {
  for_each = local.keeping

  project     = var.project_id
  role_id     = "${replace(var.prefix, "-", "_")}pitstop_${each.key}_secrets"
  title       = "Pitstop: metadata values for ${each.key}"
  description = "Exactly the permissions of the calls that the function ${each.key} makes on the second database."
  permissions = each.value
}

# Verifying a checkpoint reads the directory; a lease, and a request to the crew, are written beside the checkpoints, and
# to replace an object counts as deleting it.
resource "google_storage_bucket_iam_member" "checkpoints" {
  for_each = { for pair in setproduct(var.checkpoint_buckets, local.readers) : "${pair[0]}/${pair[1]}" => { bucket = pair[0], function = pair[1] } }

  bucket = each.value.bucket
  role   = contains(local.writers, each.value.function) ? "roles/storage.objectUser" : "roles/storage.objectViewer"
  member = module.function[each.value.function].member
}

# Before a TPU is created in another region, where its checkpoints are is looked at.
resource "google_storage_bucket_iam_member" "locations" {
  for_each = { for pair in setproduct(var.checkpoint_buckets, local.locators) : "${pair[0]}/${pair[1]}" => { bucket = pair[0], function = pair[1] } }

  bucket = each.value.bucket
  role   = "roles/storage.bucketViewer"
  member = module.function[each.value.function].member
}

# The policy file, and no other object of its bucket.
resource "google_storage_bucket_iam_member" "policy" {
  for_each = toset([for r in local.granted : r.account if local.policy != null && r.on == "the policy file"])

  bucket = local.policy.bucket
  role   = "roles/storage.objectViewer"
  member = module.function[each.key].member

  condition {
    title      = "the policy file"
    expression = "resource.name == \"projects/_/buckets/${local.policy.bucket}/objects/${local.policy.object}\""
  }
}

# Patrol writes the canary into the logs of each watched project, as everything is that has to come through its sinks, and
# asks the audit log there who ended a TPU that is gone without a word. No smaller place than a project keeps either. Its custom
# role holds both already.
resource "google_project_iam_member" "logs" {
  for_each = {
    for pair in setproduct(local.watched, ["roles/logging.logWriter", "roles/logging.viewer"]) : "${pair[0]}/${pair[1]}" => { project = pair[0], role = pair[1] }
    if var.tpu_roles == "predefined"
  }

  project = each.value.project
  role    = each.value.role
  member  = module.function["patrol"].member
}

# Whoever creates a TPU that runs as an account has to be allowed to act as it.
resource "google_service_account_iam_member" "acts_as" {
  for_each = { for pair in setproduct(var.tpu_service_accounts, local.creators) : "${pair[0]}/${pair[1]}" => { account = pair[0], function = pair[1] } }

  service_account_id = "projects/-/serviceAccounts/${each.value.account}"
  role               = "roles/iam.serviceAccountUser"
  member             = module.function[each.value.function].member
}

# Whoever creates a TPU in a shared network has to be allowed to use its subnetwork.
resource "google_compute_subnetwork_iam_member" "shared_vpc" {
  for_each = { for pair in setproduct(var.shared_vpc_subnetworks, local.creators) : "${pair[0]}/${pair[1]}" => { subnetwork = pair[0], function = pair[1] } }

  subnetwork = each.value.subnetwork
  role       = "roles/compute.networkUser"
  member     = module.function[each.value.function].member
}
