# The grants of each function's account beyond its own topics. permissions.json lists every permission, and the calls that need it stand in
# scripts/dev/deployment. A test compares that table with the calls that the functions really make. Each grant is on the smallest thing that
# the API takes; for some permissions that is a project.

locals {
  table = jsondecode(file("${path.module}/permissions.json"))

  # The rows that count with the switches in allow. A row without switches always counts.
  granted = [for r in local.table : r if length(r.switches) == 0 || length(setintersection(r.switches, var.allow)) > 0]

  # The permissions of an account in a watched project, and whether one of them changes a TPU.
  watching     = { for name in keys(local.functions) : name => sort(distinct([for r in local.granted : r.permission if r.account == name && r.on == "watched projects"])) }
  changes_tpus = { for name in keys(local.functions) : name => anytrue([for r in local.granted : r.account == name && startswith(r.permission, "tpu.") && length(r.switches) > 0]) }

  # The permissions of an account in the second database.
  keeping = { for name in keys(local.functions) : name => sort(distinct([for r in local.granted : r.permission if r.account == name && r.on == "the second database"])) if contains([for r in local.granted : r.account if r.on == "the second database"], name) }

  # The permissions of an account in the projects of clusters. What it may do inside a cluster, the cluster's own roles say.
  listing = { for name in keys(local.functions) : name => sort(distinct([for r in local.granted : r.permission if r.account == name && r.on == "clusters"])) if contains([for r in local.granted : r.account if r.on == "clusters"], name) }

  each_cluster_project = merge([for p in local.cluster_projects : { for name in keys(local.listing) : "${p}/${name}" => { project = p, function = name } }]...)

  creators = toset([for r in local.granted : r.account if r.permission == "iam.serviceAccounts.actAs"])

  # The accounts that read in buckets with checkpoints, those that write there too, and those that may only learn a bucket's location.
  readers  = toset([for r in local.granted : r.account if r.on == "checkpoint_buckets" && startswith(r.permission, "storage.objects.")])
  writers  = toset([for r in local.granted : r.account if r.on == "checkpoint_buckets" && r.permission == "storage.objects.create"])
  locators = toset([for r in local.granted : r.account if r.on == "checkpoint_buckets" && r.permission == "storage.buckets.get"])

  # The role of each account on a bucket with checkpoints.
  bucket_roles = { for name in local.readers : name => contains(local.writers, name) ? "roles/storage.objectUser" : "roles/storage.objectViewer" }

  # The grants that a training makes on its own things where another configuration deploys Pitstop: on its bucket, on the account that its
  # TPUs run as, and on a subnetwork of a Shared VPC.
  training_grants = {
    bucket = concat(
      [for name, role in local.bucket_roles : { function = name, role = role, member = module.function[name].member }],
      [for name in local.locators : { function = name, role = "roles/storage.bucketViewer", member = module.function[name].member }],
    )
    service_account = [for name in local.creators : { function = name, role = "roles/iam.serviceAccountUser", member = module.function[name].member }]
    subnetwork      = [for name in local.creators : { function = name, role = "roles/compute.networkUser", member = module.function[name].member }]
  }

  each_watched = merge([for p in local.watched : { for name in keys(local.deployed) : "${p}/${name}" => { project = p, function = name } if length(local.watching[name]) > 0 }]...)
  policy       = var.policy_uri == "" ? null : regex("^gs://(?P<bucket>[^/]+)/(?P<object>.+)$", var.policy_uri)
}

# Every function that decides reads TPUs first. Only functions that act may change a TPU, and only with the switch in allow.
resource "google_project_iam_member" "tpu" {
  for_each = local.each_watched

  project = each.value.project
  member  = module.function[each.value.function].member
  role = (
    var.tpu_roles == "custom" ? google_project_iam_custom_role.tpu[each.key].id :
    local.changes_tpus[each.value.function] ? "roles/tpu.admin" : "roles/tpu.viewer"
  )

  # A change of tpu_roles grants the new role before it takes the old one away. A call that is refused in between would end an incident.
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

  depends_on = [time_sleep.apis]
}

# Every function reads and writes the ledger, and no other database.
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

# The second database: patrol writes there without reading, and only recreate reads. No predefined role writes without reading, so both
# have custom roles.
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

  depends_on = [time_sleep.apis]
}

# To list the Jobs of a cluster, to replace one, or to label its machines, a function has to find its endpoint and to connect there. No predefined role allows only that.
resource "google_project_iam_member" "clusters" {
  for_each = local.each_cluster_project

  project = each.value.project
  role    = google_project_iam_custom_role.clusters[each.key].id
  member  = module.function[each.value.function].member
}

resource "google_project_iam_custom_role" "clusters" {
  for_each = local.each_cluster_project

  project     = each.value.project
  role_id     = "${replace(var.prefix, "-", "_")}pitstop_${each.value.function}_clusters"
  title       = "Pitstop: clusters for ${each.value.function}"
  description = "Exactly the permissions of the calls that the function ${each.value.function} makes to find a cluster and to connect to it."
  permissions = local.listing[each.value.function]

  depends_on = [time_sleep.apis]
}

# To verify a checkpoint a function reads the directory. It writes leases and requests to the crew beside the checkpoints. Replacing an
# object counts as deleting it.
resource "google_storage_bucket_iam_member" "checkpoints" {
  for_each = { for pair in setproduct(var.checkpoint_buckets, local.readers) : "${pair[0]}/${pair[1]}" => { bucket = pair[0], function = pair[1] } }

  bucket = each.value.bucket
  role   = local.bucket_roles[each.value.function]
  member = module.function[each.value.function].member
}

# Before recreate creates a TPU in another region, it looks where the checkpoints are.
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

# Patrol writes the canary into the logs of each watched project, because the canary has to pass that project's sinks. In the audit log
# there it looks up who ended a TPU that vanished. Both permissions exist on a project and on nothing smaller. The custom role already
# holds them.
resource "google_project_iam_member" "logs" {
  for_each = {
    for pair in setproduct(local.watched, ["roles/logging.logWriter", "roles/logging.viewer"]) : "${pair[0]}/${pair[1]}" => { project = pair[0], role = pair[1] }
    if var.tpu_roles == "predefined"
  }

  project = each.value.project
  role    = each.value.role
  member  = module.function["patrol"].member
}

# To create a TPU that runs as an account, recreate has to be allowed to act as that account.
resource "google_service_account_iam_member" "acts_as" {
  for_each = { for pair in setproduct(var.tpu_service_accounts, local.creators) : "${pair[0]}/${pair[1]}" => { account = pair[0], function = pair[1] } }

  service_account_id = "projects/-/serviceAccounts/${each.value.account}"
  role               = "roles/iam.serviceAccountUser"
  member             = module.function[each.value.function].member
}

# To create a TPU in a shared network, recreate has to be allowed to use its subnetwork.
resource "google_compute_subnetwork_iam_member" "shared_vpc" {
  for_each = { for pair in setproduct(var.shared_vpc_subnetworks, local.creators) : "${pair[0]}/${pair[1]}" => { subnetwork = pair[0], function = pair[1] } }

  subnetwork = each.value.subnetwork
  role       = "roles/compute.networkUser"
  member     = module.function[each.value.function].member
}
