# Log sinks: one for each source in each watched project.

locals {
  # filters/TOPIC/SOURCE.filter is the filter of one source. The Go code that reads the entries defines the texts:
  # `go run ./scripts/dev/deployment` writes them, and a test keeps them fresh. The filter of audit entries drops the beginnings of operations
  # that the accounts of this deployment started. It lists these accounts by name, so no other account is mistaken for one of them. The
  # sources of GKE count only where clusters are watched. Where no controller is named, our accounts stand in their place: an empty name in a
  # filter could select entries that name nobody.
  known_accounts = {
    our_principals = join("\" OR \"", local.our_principals)
    controllers    = join("\" OR \"", coalescelist(sort(var.controllers), local.our_principals))
  }
  filter_files = fileset("${path.module}/filters", "*/*.filter")
  sources = {
    for topic in distinct([for f in local.filter_files : dirname(f)]) : topic => {
      for f in local.filter_files : trimsuffix(basename(f), ".filter") => trimspace(templatefile("${path.module}/filters/${f}", local.known_accounts)) if dirname(f) == topic && (length(var.clusters) > 0 || !startswith(basename(f), "gke-"))
    }
  }
}

module "log_sink" {
  source   = "./modules/log-sink"
  for_each = local.sources

  project_ids = local.watched
  topic       = google_pubsub_topic.main[each.key].id
  filters     = each.value
  prefix      = "${var.prefix}pitstop-"
  publishers  = toset([for name, f in local.deployed : google_service_account.function[name].member if contains(values(f.publishes_to), each.key)])
}
