# The grants of each function's account beyond its own topics. permissions.json lists every permission, and the calls that need it stand in
# scripts/dev/deployment. A test compares that table with the calls that the functions really make. Each grant is on the smallest thing that
# the API takes; for some permissions that is a project.

locals {
  table = jsondecode(file("${path.module}/permissions.json"))

  # Every account has the name of its function. The two consoles are one function with an account each.
  accounts = concat(keys(local.deployed), keys(local.consoles))

  # The rows that count with the switches in allow. A row without switches always counts.
  granted = [for r in local.table : r if length(r.switches) == 0 || length(setintersection(r.switches, var.allow)) > 0]

  # The permissions of an account in a watched project, and whether one of them changes a TPU.
  watching     = { for name in keys(local.functions) : name => sort(distinct([for r in local.granted : r.permission if r.account == name && r.on == "watched projects"])) }
  changes_tpus = { for name in keys(local.functions) : name => anytrue([for r in local.granted : r.account == name && startswith(r.permission, "tpu.") && length(r.switches) > 0]) }

  # The permissions of each account in each database, where it has any.
  keeping = merge([for database, on in { ledger = "the ledger", secrets = "the metadata values", told = "what was told" } : {
    for name in local.accounts : "${database}/${name}" => {
      database    = database
      function    = name
      permissions = sort(distinct([for r in local.granted : r.permission if r.account == name && r.on == on]))
    } if contains([for r in local.granted : r.account if r.on == on], name)
  }]...)

  # The permissions of an account in the projects of clusters. What it may do inside a cluster, the cluster's own roles say.
  listing = { for name in keys(local.functions) : name => sort(distinct([for r in local.granted : r.permission if r.account == name && r.on == "clusters"])) if contains([for r in local.granted : r.account if r.on == "clusters"], name) }

  each_cluster_project = merge([for p in local.cluster_projects : { for name in keys(local.listing) : "${p}/${name}" => { project = p, function = name } }]...)

  creators = toset([for r in local.granted : r.account if r.permission == "iam.serviceAccounts.actAs"])

  # The grants on a bucket with checkpoints. An account may read all of it, because IAM judges a listing on the bucket. It may write objects of
  # one name, in any directory. To replace an object counts as deleting it.
  bucket_grants = distinct([for r in local.granted : {
    function  = r.account
    role      = r.role
    condition = r.object == "" ? "" : "resource.type == \"storage.googleapis.com/Object\" && resource.name.endsWith(\"/${r.object}\")"
  } if r.on == "checkpoint_buckets"])

  # The grants that a training makes on its own things where another configuration deploys Pitstop: on its bucket, on the account that its
  # TPUs run as, and on a subnetwork of a Shared VPC.
  training_grants = {
    bucket          = [for g in local.bucket_grants : merge(g, { member = google_service_account.function[g.function].member })]
    service_account = [for name in local.creators : { function = name, role = "roles/iam.serviceAccountUser", member = google_service_account.function[name].member }]
    subnetwork      = [for name in local.creators : { function = name, role = "roles/compute.networkUser", member = google_service_account.function[name].member }]
  }

  each_watched = merge([for p in local.watched : { for name in keys(local.deployed) : "${p}/${name}" => { project = p, function = name } if length(local.watching[name]) > 0 }]...)
  policy       = var.policy_uri == "" ? null : regex("^gs://(?P<bucket>[^/]+)/(?P<object>.+)$", var.policy_uri)
}

# The account that each function, and each console, acts as. It stands here and not in the function's module: a grant that is created before its
# predecessor goes (see below) passes that order on to all that it refers to, and a reference to one account of a module refers to the
# whole module. Grants there that stay the same in another region would be made anew, and then taken away.
resource "google_service_account" "function" {
  for_each = toset(local.accounts)

  project      = var.project_id
  account_id   = "pitstop-${var.prefix}${each.key}"
  display_name = "Pitstop function ${var.prefix}${each.key}"

  depends_on = [time_sleep.apis]
}

# Every function that decides reads TPUs first. Only functions that act may change a TPU, and only with the switch in allow.
resource "google_project_iam_member" "tpu" {
  for_each = local.each_watched

  project = each.value.project
  member  = google_service_account.function[each.value.function].member
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

# An account may do in a database what its calls need there, and nothing in another one. No account may delete a document, and no predefined
# role writes without that right, so each has a custom role.
resource "google_project_iam_member" "database" {
  for_each = local.keeping

  project = var.project_id
  role    = google_project_iam_custom_role.database[each.key].id
  member  = google_service_account.function[each.value.function].member

  condition {
    title      = "the database ${local.databases[each.value.database]}"
    expression = "resource.name == \"projects/${var.project_id}/databases/${local.databases[each.value.database]}\""
  }
}

resource "google_project_iam_custom_role" "database" {
  for_each = local.keeping

  project     = var.project_id
  role_id     = "${replace(var.prefix, "-", "_")}pitstop_${each.value.function}_${each.value.database}"
  title       = "Pitstop: ${local.databases[each.value.database]} for ${each.value.function}"
  description = "Exactly the permissions of the calls that the function ${each.value.function} makes on this database."
  permissions = each.value.permissions

  depends_on = [time_sleep.apis]
}

# To list the Jobs of a cluster, to replace one, or to label its machines, a function has to find its endpoint and to connect there. No predefined role allows only that.
resource "google_project_iam_member" "clusters" {
  for_each = local.each_cluster_project

  project = each.value.project
  role    = google_project_iam_custom_role.clusters[each.key].id
  member  = google_service_account.function[each.value.function].member
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

# To verify a checkpoint a function reads the directory. It writes the lease, or the request to the crew, beside the checkpoints and can
# write no other object. Before recreate creates a TPU in another region, it looks where the bucket is. A bucket without uniform bucket-level
# access takes no condition.
resource "google_storage_bucket_iam_member" "checkpoints" {
  for_each = { for pair in setproduct(var.checkpoint_buckets, local.bucket_grants) : "${pair[0]}/${pair[1].function}/${pair[1].role}" => merge(pair[1], { bucket = pair[0] }) }

  bucket = each.value.bucket
  role   = each.value.role
  member = google_service_account.function[each.value.function].member

  dynamic "condition" {
    for_each = each.value.condition == "" || contains(var.fine_grained_buckets, each.value.bucket) ? [] : [each.value.condition]

    content {
      title      = "objects of one name"
      expression = condition.value
    }
  }
}

# The policy file, and no other object of its bucket.
resource "google_storage_bucket_iam_member" "policy" {
  for_each = toset([for r in local.granted : r.account if local.policy != null && r.on == "the policy file"])

  bucket = local.policy.bucket
  role   = "roles/storage.objectViewer"
  member = google_service_account.function[each.key].member

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
  member  = google_service_account.function["patrol"].member
}

# Patrol asks Cloud Monitoring how long messages wait for the functions. Google grants that on a project and on nothing smaller, and each
# predefined role carries more.
resource "google_project_iam_member" "figures" {
  project = var.project_id
  role    = google_project_iam_custom_role.figures.id
  member  = google_service_account.function["patrol"].member
}

resource "google_project_iam_custom_role" "figures" {
  project     = var.project_id
  role_id     = "${replace(var.prefix, "-", "_")}pitstop_patrol_figures"
  title       = "Pitstop: figures for patrol"
  description = "Exactly the permissions of the calls that the function patrol makes to Cloud Monitoring."
  permissions = sort([for r in local.granted : r.permission if r.account == "patrol" && r.on == "the project"])

  depends_on = [time_sleep.apis]
}

# To create a TPU that runs as an account, recreate has to be allowed to act as that account.
resource "google_service_account_iam_member" "acts_as" {
  for_each = { for pair in setproduct(var.tpu_service_accounts, local.creators) : "${pair[0]}/${pair[1]}" => { account = pair[0], function = pair[1] } }

  service_account_id = "projects/-/serviceAccounts/${each.value.account}"
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.function[each.value.function].member
}

# To create a TPU in a shared network, recreate has to be allowed to use its subnetwork.
resource "google_compute_subnetwork_iam_member" "shared_vpc" {
  for_each = { for pair in setproduct(var.shared_vpc_subnetworks, local.creators) : "${pair[0]}/${pair[1]}" => { subnetwork = pair[0], function = pair[1] } }

  subnetwork = each.value.subnetwork
  role       = "roles/compute.networkUser"
  member     = google_service_account.function[each.value.function].member
}
