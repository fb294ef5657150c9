# The grants of one training, on its own bucket, account and subnetwork. The installation of Pitstop says which accounts need which role: it
# knows its accounts, and the switches that it allows.

data "terraform_remote_state" "pitstop" {
  backend = "gcs"
  config  = var.state

  lifecycle {
    postcondition {
      condition     = can(self.outputs.training_grants)
      error_message = "The state in gs://${var.state.bucket}/${var.state.prefix} has no output training_grants. Either it is not Pitstop's state, or Pitstop has to be applied there once with this release, or its root module has to pass the output on: output \"training_grants\" { value = module.pitstop.training_grants }."
    }
  }
}

locals {
  grants = data.terraform_remote_state.pitstop.outputs.training_grants

  # Each thing with each grant on it, by the function and the role.
  on = {
    for kind, things in { bucket = var.checkpoint_buckets, service_account = var.tpu_service_accounts, subnetwork = var.shared_vpc_subnetworks } : kind => {
      for pair in setproduct(things, local.grants[kind]) : "${pair[0]} ${pair[1].function} ${pair[1].role}" => merge(pair[1], { thing = pair[0] })
    }
  }
}

# A warning, and no error: an installation that only watches is complete.
check "allowed" {
  assert {
    condition     = length(local.grants.bucket) > 0 || length(local.grants.service_account) > 0
    error_message = "The installation of Pitstop allows nothing that needs a grant here, so nobody saves this training or brings it back. To change that, set allow there and apply it. Then apply this configuration again."
  }
}

# An account may write objects of one name alone. A bucket without uniform bucket-level access takes no condition.
resource "google_storage_bucket_iam_member" "main" {
  for_each = local.on.bucket

  bucket = each.value.thing
  role   = each.value.role
  member = each.value.member

  dynamic "condition" {
    for_each = each.value.condition == "" || contains(var.fine_grained_buckets, each.value.thing) ? [] : [each.value.condition]

    content {
      title      = "objects of one name"
      expression = condition.value
    }
  }
}

resource "google_service_account_iam_member" "main" {
  for_each = local.on.service_account

  service_account_id = "projects/-/serviceAccounts/${each.value.thing}"
  role               = each.value.role
  member             = each.value.member
}

resource "google_compute_subnetwork_iam_member" "main" {
  for_each = local.on.subnetwork

  subnetwork = each.value.thing
  role       = each.value.role
  member     = each.value.member
}
