# Metrics from the functions' own log lines, for the dashboard and the alerts.

locals {
  services  = { for name in keys(local.deployed) : name => "${var.prefix}${name}" }
  own_lines = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=(${join(" OR ", [for s in sort(values(local.services)) : "\"${s}\""])})"

  # Lines that are counted. A condition narrows the lines with that message.
  counters = {
    incidents_opened = { message = "incident opened", label = "cause", description = "Incidents that were opened, by cause." }
    incidents_closed = { message = "incident closed", label = "outcome", description = "Incidents that were closed, by outcome." }
    bodies_differ    = { message = "request body differs", label = "action", description = "Requests with a body that Pitstop did not send, by action." }
    brake_holds      = { message = "brake holds", label = "zone", description = "Destructive calls that the brake held back, by zone." }
    canaries         = { message = "canary returned", label = "project", description = "Canaries that came back through the log sinks, by watched project." }
    canaries_missing = { message = "canary missing", label = "project", description = "Checks that found a canary overdue or impossible to write, by watched project." }
    refused          = { message = "notification refused", label = "target", description = "Notifications that a target refused for good, by target." }
    ticks            = { message = "tick done", label = "project", description = "Ticks that patrol finished, by watched project." }

    # A tick that cannot read the ledger counts no incidents.
    ticks_counted = {
      message     = "tick done"
      condition   = "jsonPayload.open>=0"
      label       = "project"
      description = "Ticks that counted the open incidents, by watched project."
    }

    # The log path opens the incident of a loss within seconds. Where patrol had to open it, no entry had come by its next reading.
    found_by_patrol = {
      message     = "incident opened"
      condition   = "jsonPayload.found_by=\"patrol\" AND jsonPayload.loss=true"
      label       = "cause"
      description = "Losses that patrol found in the API before any log entry reported them, by cause."
    }
  }

  # Lines with a number. A line without it is not counted.
  distributions = {
    # From a tenth of a second to a day and more.
    reaction_seconds = {
      message     = "request decided", field = "reaction_seconds", label = "event_type", unit = "s", buckets = 24, growth = 1.8, scale = 0.1
      description = "The time from a loss to the stored request that follows from it."
    }
    # From a second to a week: percentiles are read from the buckets, so these are narrow.
    away_seconds = {
      message     = "incident closed", field = "away_seconds", label = "outcome", unit = "s", buckets = 60, growth = 1.25, scale = 1
      description = "The time that training stood still in an incident, by outcome."
    }
    # Only its sum is read.
    chip_hours = {
      message     = "incident closed", field = "chip_hours", label = "outcome", unit = "h", buckets = 24, growth = 2, scale = 0.01
      description = "The chip-hours that training lost in an incident, by outcome."
    }
    # Only its mean is read. A distribution costs ten times as much as a count, so ticks without an open incident stay out.
    open_incidents = {
      message     = "tick done", field = "open", label = "project", unit = "1", buckets = 12, growth = 2, scale = 1
      condition   = "jsonPayload.open>=1"
      description = "The incidents that are open at the beginning of a tick, where there are any, by watched project."
    }
  }

  metric = { for key in concat(keys(local.counters), keys(local.distributions)) : key => "logging.googleapis.com/user/${var.prefix}pitstop/${key}" }

  # The same names as PromQL writes them: https://cloud.google.com/monitoring/promql/promql-mapping
  promql = { for key, name in local.metric : key => replace(replace(name, "logging.googleapis.com/", "logging_googleapis_com:"), "/[^a-zA-Z0-9_:]/", "_") }
}

# Cloud Monitoring refuses an alert on a metric that it does not know yet. So metrics come early, and no metric waits for a function.
resource "google_logging_metric" "counter" {
  for_each = local.counters

  project          = var.project_id
  name             = "${var.prefix}pitstop/${each.key}"
  description      = each.value.description
  filter           = join(" AND ", compact([local.own_lines, "jsonPayload.message=\"${each.value.message}\"", lookup(each.value, "condition", "")]))
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

  depends_on = [time_sleep.apis]
}

resource "google_logging_metric" "distribution" {
  for_each = local.distributions

  project          = var.project_id
  name             = "${var.prefix}pitstop/${each.key}"
  description      = each.value.description
  filter           = join(" AND ", compact([local.own_lines, "jsonPayload.message=\"${each.value.message}\"", lookup(each.value, "condition", "")]))
  value_extractor  = "EXTRACT(jsonPayload.${each.value.field})"
  label_extractors = { (each.value.label) = "EXTRACT(jsonPayload.${each.value.label})" }

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "DISTRIBUTION"
    unit        = each.value.unit

    labels {
      key        = each.value.label
      value_type = "STRING"
    }
  }

  bucket_options {
    exponential_buckets {
      num_finite_buckets = each.value.buckets
      growth_factor      = each.value.growth
      scale              = each.value.scale
    }
  }

  depends_on = [time_sleep.apis]
}
