# When a person has to look, and where to begin.

locals {
  # What each alert is called, when it fires, and the first thing to do about it, on one line. The README's table is made of this.
  alerts = {
    bodies_differ = {
      title = "somebody else writes requests"
      fires = "the body of a request is not the one that Pitstop sent"
      act   = "The line `request body differs` names the incident and the fields. Nothing of the body was obeyed. See who may publish on the request topics: only the service accounts of Pitstop's own functions should."
    }
    brake = {
      title = "the brake holds destructive calls back"
      fires = "a call was held"
      act   = "`pitstop status`: a zone that fails as a whole looks like this, and so does a fault. If the calls are right, raise `brake_per_zone` or `brake_per_project`; if not, `pitstop pause --all`."
    }
    canary = {
      title = "log entries do not arrive"
      fires = "the daily canary of a watched project is not back after half an hour, or cannot be written"
      act   = "`terraform apply` mends sinks and their writer's right to publish; then `pitstop canary` tells whether entries arrive."
    }
    dead_letter = {
      title = "a message could not be handled"
      fires = "a dead-letter subscription holds a message"
      act   = "Read why in the function's WARNING lines with its message_id, mend that, then `pitstop redrive TOPIC`."
    }
    errors = {
      title = "a function reports errors"
      fires = "more than 3 ERROR lines of its own in 5 minutes"
      act   = "Read them: each says what is wrong, and where."
    }
    escalated = {
      title = "an incident needs a person"
      fires = "an incident ended escalated"
      act   = "`pitstop incident ID`, with the ID in the line `incident closed`, says why and what to do; when that is done, `pitstop retry WORKLOAD`."
    }
    patrol = {
      title = "patrol does not run"
      fires = "in a watched project no tick of patrol ended for 5 minutes, or none ever did"
      act   = "See that its job of Cloud Scheduler is enabled and its last run succeeded; then read the log of the function patrol."
    }
    refused = {
      title = "people are not told"
      fires = "a target of `notify` refused a message for good; there only with `notify`"
      act   = "The line `notification refused` says why: mostly a token that was taken back, or a bot that was not invited."
    }
    unacknowledged = {
      title = "messages wait too long"
      fires = "the oldest unacknowledged message of a function is older than 15 minutes, for 5"
      act   = "Read the function's log from WARNING on; then see that `terraform plan` is empty."
    }
  }
}

locals {
  run          = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=one_of(${join(", ", [for s in sort(values(local.services)) : "\"${s}\""])})"
  subscription = "resource.type=\"pubsub_subscription\" AND resource.labels.subscription_id=one_of"
  subscribed   = "${local.subscription}(${join(", ", [for s in sort(values(module.function)[*].subscription) : "\"${s}\""])})"
  dead         = "${local.subscription}(${join(", ", [for s in sort(compact(values(module.function)[*].dead_letter_subscription)) : "\"${s}\""])})"
  pitstop      = { for verb in ["canary", "incident ID", "pause --all --why WHY", "redrive TOPIC", "retry WORKLOAD"] : split(" ", verb)[0] => "`go run ./scripts/pitstop ${verb} ${local.place}`" }
  place        = "--project ${var.project_id}${var.prefix == "" ? "" : " --prefix ${var.prefix}"}"
  user_metric  = { for key, type in local.metric : key => "resource.type=\"cloud_run_revision\" AND metric.type=\"${type}\"" }

  # Alerts on a number that is too high. A metric that counts lines is silent when there are none: that ends an incident, so
  # that the next line begins another one and somebody is told again.
  thresholds = {
    dead_letter = {
      severity  = "ERROR"
      filter    = "${local.dead} AND metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\""
      aligner   = "ALIGN_MAX"
      group_by  = ["resource.label.subscription_id"]
      above     = 0
      duration  = "0s"
      silence   = null
      runbook   = "Twenty deliveries failed over hours, and the message waits in the dead-letter subscription that is named above, for 7 days. Read why: the function's WARNING lines with its message_id. Cure that, then bring it back: ${local.pitstop.redrive}, where TOPIC is what that function reacts to. Requests that nobody wants any more are dropped, and handling one twice does no harm."
      documents = "dead letter"
    }
    unacknowledged = {
      severity  = "WARNING"
      filter    = "${local.subscribed} AND metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\""
      aligner   = "ALIGN_MAX"
      group_by  = ["resource.label.subscription_id"]
      above     = 900
      duration  = "300s"
      silence   = null
      runbook   = "The function of this subscription answers with errors, or not at all. Look at its log (severity WARNING and above), then at whether it was deployed with what it needs: terraform plan has to be empty. While messages wait, patrol still finds what they would have said."
      documents = "oldest unacknowledged message"
    }
    errors = {
      severity  = "ERROR"
      filter    = "${local.run} AND metric.type=\"logging.googleapis.com/log_entry_count\" AND metric.labels.log=one_of(\"run.googleapis.com/stdout\", \"run.googleapis.com/stderr\") AND metric.labels.severity=one_of(\"ERROR\", \"CRITICAL\", \"ALERT\", \"EMERGENCY\")"
      aligner   = "ALIGN_DELTA"
      group_by  = ["resource.label.service_name"]
      above     = 3 # a patrol that fails writes one a minute
      duration  = "60s"
      silence   = "EVALUATION_MISSING_DATA_INACTIVE"
      runbook   = "More than three ERROR lines in five minutes. Each says what is wrong: `function not configured` names the variables, `event rejected` the faults of the message (it stays in the topic for 7 days, see the seek command of gcloud pubsub subscriptions), patrol's what it could not read."
      documents = "error rate"
    }
    bodies_differ = {
      severity  = "WARNING"
      filter    = local.user_metric.bodies_differ
      aligner   = "ALIGN_DELTA"
      group_by  = ["metric.label.action"]
      above     = 0
      duration  = "60s"
      silence   = "EVALUATION_MISSING_DATA_INACTIVE"
      runbook   = "A request came with a body that Pitstop did not send. The function took only the pointer from it (workload, incident, epoch, action and slice) and did what the ledger says, so no call was made that was not decided. Read the line `request body differs`: it names the incident and the fields. Then list who may publish, with gcloud pubsub topics get-iam-policy for the topics checkpoint-requests, recovery-requests and recreate-requests, and with gcloud projects get-iam-policy for the whole project, and take that right from every account that is not one of Pitstop's functions. The audit log of Pub/Sub names the publisher, if data access logs are on."
      documents = "request body differs"
    }
    brake = {
      severity  = "WARNING"
      filter    = local.user_metric.brake_holds
      aligner   = "ALIGN_DELTA"
      group_by  = ["metric.label.zone"]
      above     = 0
      duration  = "60s"
      silence   = "EVALUATION_MISSING_DATA_INACTIVE"
      runbook   = "More TPUs were to be deleted or stopped within an hour than the brake allows. A zone that fails as a whole looks like this, and so does a fault. Held calls go on by themselves at the next full hour. If they are right, raise brake_per_zone or brake_per_project; if not, hold everything with ${local.pitstop.pause}, then take recreate out of allow and apply."
      documents = "brake"
    }
    escalated = {
      severity  = "CRITICAL"
      filter    = "${local.user_metric.incidents_closed} AND metric.labels.outcome=\"escalated\""
      aligner   = "ALIGN_DELTA"
      group_by  = ["resource.label.service_name"]
      above     = 0
      duration  = "60s"
      silence   = "EVALUATION_MISSING_DATA_INACTIVE"
      runbook   = "Pitstop gave up on an incident and says why and what to do: read the line `incident closed` with outcome escalated, then its story: ${local.pitstop.incident}. Nothing more is done about that TPU until something new happens to it, or you ask for that: ${local.pitstop.retry}."
      documents = "incident escalated"
    }
    canary = {
      severity  = "ERROR"
      filter    = local.user_metric.canaries_missing
      aligner   = "ALIGN_DELTA"
      group_by  = ["metric.label.project"]
      above     = 0
      duration  = "60s"
      silence   = "EVALUATION_MISSING_DATA_INACTIVE"
      runbook   = "Once a day patrol writes a log entry that has to come back through the sinks, and it did not within half an hour, or could not be written, which patrol's ERROR lines say. Run terraform apply: it mends sinks, the right of their writer to publish, and that of patrol to write. ${local.pitstop.canary} sends an entry at once and shows how far it comes. Then see the error e-mails of Cloud Logging, and the metric logging.googleapis.com/exports/error_count. Until entries arrive, patrol sees losses by its readings alone, up to a minute later."
      documents = "canary missing"
    }
    refused = {
      severity  = "ERROR"
      filter    = local.user_metric.refused
      aligner   = "ALIGN_DELTA"
      group_by  = ["metric.label.target"]
      above     = 0
      duration  = "60s"
      silence   = "EVALUATION_MISSING_DATA_INACTIVE"
      runbook   = "A target refused a message of the function notify for good, and nobody read it there. The line `notification refused` says why: `invalid_auth` or 401 a token that was taken back (add a version to its secret, then deploy notify anew), `not_in_channel` or `channel_not_found` a bot that was not invited, 404 a webhook that is gone. Incidents go on meanwhile; read them with pitstop status. A target that is only away shows as messages that wait too long, and is told when it is back."
      documents = "notification refused"
    }
  }
}

resource "google_monitoring_alert_policy" "threshold" {
  for_each = { for key, alert in local.thresholds : key => alert if key != "refused" || local.tells }

  project               = var.project_id
  display_name          = "${var.prefix}Pitstop: ${local.alerts[each.key].title}"
  combiner              = "OR"
  severity              = each.value.severity
  notification_channels = var.notification_channels
  user_labels           = local.labels

  conditions {
    display_name = each.value.documents

    condition_threshold {
      filter          = each.value.filter
      comparison      = "COMPARISON_GT"
      threshold_value = each.value.above
      duration        = each.value.duration

      evaluation_missing_data = each.value.silence

      aggregations {
        alignment_period     = "300s"
        per_series_aligner   = each.value.aligner
        cross_series_reducer = "REDUCE_SUM"
        group_by_fields      = each.value.group_by
      }

      trigger {
        count = 1
      }
    }
  }

  alert_strategy {
    auto_close = "1800s"
  }

  documentation {
    subject   = "Pitstop in ${var.project_id}: ${local.alerts[each.key].title}"
    content   = "${local.alerts[each.key].act}\n\n${each.value.runbook}"
    mime_type = "text/markdown"
  }

  # A metric can be asked for only when it is there.
  depends_on = [google_logging_metric.counter]
}

# Patrol is what finds everything that others missed: that it stopped nobody else would notice. Counted is the line that a
# tick ends with, because what is only acknowledged did no work. A project that has none at all counts as zero, which only
# a query says: a condition of the other kinds begins with the first data, and a patrol that never ran has none.
resource "google_monitoring_alert_policy" "patrol" {
  project               = var.project_id
  display_name          = "${var.prefix}Pitstop: ${local.alerts.patrol.title}"
  combiner              = "OR"
  severity              = "CRITICAL"
  notification_channels = var.notification_channels
  user_labels           = local.labels

  conditions {
    display_name = "patrol not seen for 5 minutes"

    condition_prometheus_query_language {
      # None in three minutes, and so for two more: room for lines that are counted late, and for the first ticks.
      query    = "(count(sum by (project) (increase(${local.ticks_done}{monitored_resource=\"cloud_run_revision\"}[3m])) > 0) or vector(0)) < ${length(local.watched)}"
      duration = "120s"

      evaluation_interval       = "60s"
      disable_metric_validation = true # the metric is as new as this
    }
  }

  alert_strategy {
    auto_close = "1800s"
  }

  documentation {
    subject   = "Pitstop in ${var.project_id}: ${local.alerts.patrol.title}"
    content   = "${local.alerts.patrol.act}\n\nOne tick a minute has to end in each watched project, by the job ${google_cloud_scheduler_job.tick.name} and the function ${local.services.patrol}: `tick done` names the project, `function not configured` the variables that are missing, and no line at all means that no message arrives (the subscription ${module.function["patrol"].subscription}). Minutes after a first apply, wait for the first tick."
    mime_type = "text/markdown"
  }

  depends_on = [google_logging_metric.counter]
}

locals {
  # The metric's name as queries write it: https://cloud.google.com/monitoring/promql/promql-mapping
  ticks_done = replace(replace(local.metric.ticks, "logging.googleapis.com/", "logging_googleapis_com:"), "/[^a-zA-Z0-9_:]/", "_")
}
