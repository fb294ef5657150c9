# Metrics from the functions' own log lines, for the dashboard and the alerts.

locals {
  services  = { for name in keys(local.deployed) : name => "${var.prefix}${name}" }
  own_lines = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=(${join(" OR ", [for s in sort(values(local.services)) : "\"${s}\""])})"

  counters = {
    incidents_opened = { message = "incident opened", label = "cause", description = "Incidents that were opened, by cause." }
    incidents_closed = { message = "incident closed", label = "outcome", description = "Incidents that were closed, by outcome." }
    bodies_differ    = { message = "request body differs", label = "action", description = "Requests whose body is not the one that was sent, by action." }
    brake_holds      = { message = "brake holds", label = "zone", description = "Destructive calls that the brake held back, by zone." }
    canaries         = { message = "canary returned", label = "project", description = "Canaries that came back through the log sinks, by watched project." }
    canaries_missing = { message = "canary missing", label = "project", description = "Looks at a canary that should be back and is not, or that cannot be written, by watched project." }
    refused          = { message = "notification refused", label = "target", description = "Notifications that a target refused for good, by target." }
    ticks            = { message = "tick done", label = "project", description = "Ticks that patrol finished, by watched project." }
  }

  metric = {
    for key in concat(keys(local.counters), ["reaction_seconds"]) : key => "logging.googleapis.com/user/${var.prefix}pitstop/${key}"
  }
}

# A metric is known to alerts up to ten minutes after it was made, and until then they are refused. So metrics come first, and
# alerts last, behind the functions that take minutes to be built: nothing here waits for one.
resource "google_logging_metric" "counter" {
  for_each = local.counters

  project          = var.project_id
  name             = "${var.prefix}pitstop/${each.key}"
  description      = each.value.description
  filter           = "${local.own_lines} AND jsonPayload.message=\"${each.value.message}\""
  label_extractors = { (each.value.label) = "EXTRACT(jsonPayload.${each.value.label})" }

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
    unit        = "1"

    labels {
      key        = each.value.label
      value_type = "STRING"
    }
  }

  depends_on = [google_project_service.main]
}

resource "google_logging_metric" "reaction" {
  project         = var.project_id
  name            = "${var.prefix}pitstop/reaction_seconds"
  description     = "How long after something happened a request that follows from it was stored."
  filter          = "${local.own_lines} AND jsonPayload.message=\"request decided\""
  value_extractor = "EXTRACT(jsonPayload.reaction_seconds)"

  label_extractors = { event_type = "EXTRACT(jsonPayload.event_type)" }

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "DISTRIBUTION"
    unit        = "s"

    labels {
      key        = "event_type"
      value_type = "STRING"
    }
  }

  # From a tenth of a second to a day and more.
  bucket_options {
    exponential_buckets {
      num_finite_buckets = 24
      growth_factor      = 1.8
      scale              = 0.1
    }
  }

  depends_on = [google_project_service.main]
}
