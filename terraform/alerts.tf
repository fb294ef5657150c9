# When a person has to look, and where to begin.

locals {
  # Each alert's title, its condition, and the first thing to do, on one line. The README's table of alerts comes from here.
  alerts = {
    bodies_differ = {
      title = "somebody else writes requests"
      fires = "a request has a body that Pitstop did not send"
      act   = "Read the line `request body differs`: it names the incident and the fields. Pitstop obeyed nothing of that body. Then list who may publish on the request topics: only the service accounts of Pitstop's own functions should."
    }
    brake = {
      title = "the brake holds destructive calls back"
      fires = "the brake held a call"
      act   = "Run `pitstop status`. A zone that fails as a whole looks like this, and so does a fault. If the calls are right, raise `brake_per_zone` or `brake_per_project`. If not, run `pitstop pause --all`."
    }
    canary = {
      title = "log entries do not arrive"
      fires = "the daily canary of a watched project is not back after half an hour, or cannot be written"
      act   = "Run `terraform apply`: it repairs the sinks and their right to publish. Then `pitstop canary` shows whether entries arrive."
    }
    crashed = {
      title = "a function crashes"
      fires = "a function panicked, or its process ended with an exit code other than 0"
      act   = "Read the line `function panicked`: it has the stack. If there is none, read the function's log before the line `Container called exit`. If an upgrade brought this, apply the older release."
    }
    dead_letter = {
      title = "a message could not be handled"
      fires = "a dead-letter subscription holds a message"
      act   = "Find the reason in the function's WARNING lines with its message_id and fix that. Then run `pitstop redrive TOPIC`."
    }
    dropped = {
      title = "a message was dropped"
      fires = "a function rejected a message that no delivery can cure, such as one that it cannot read"
      act   = "Read the line `event rejected`: it names the message and its fault."
    }
    errors = {
      title = "a function reports errors"
      fires = "a function wrote more than 3 ERROR lines in 5 minutes"
      act   = "Read them: each says what is wrong, and where."
    }
    escalated = {
      title = "an incident needs a person"
      fires = "an incident ended escalated"
      act   = "Run `pitstop incident ID`, with the ID in the line `incident closed`: it says why, and what to do. After that, run `pitstop retry WORKLOAD`."
    }
    memory = {
      title = "a function runs out of memory"
      fires = "Cloud Run ended an instance that took more memory than it has"
      act   = "Read which function it was. If it comes again, lower its `concurrency` in `main.tf` or raise `memory` in `modules/function`, and apply."
    }
    patrol = {
      title = "patrol does not run"
      fires = "in a watched project no tick of patrol ended for 5 minutes, or none ever did"
      act   = "Check that its job of Cloud Scheduler is enabled and that the last run succeeded. Then read the log of the function patrol."
    }
    refused = {
      title = "people are not told"
      fires = "a target of `notify` refused a message for good (this alert exists only with `notify`)"
      act   = "Read the line `notification refused`. The usual reasons are a revoked token, or a bot that nobody invited."
    }
    unacknowledged = {
      title = "messages wait too long"
      fires = "for 5 minutes a function has had a message that is older than 15 minutes and not acknowledged"
      act   = "Read the function's log from WARNING on. Then check that `terraform plan` is empty."
    }
    unstarted = {
      title = "a function does not start"
      fires = "an instance did not answer Cloud Run's first probe"
      act   = "Read the function's log just before that line. If it says nothing and later instances start, the fault was Cloud Run's."
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

  # Alerts on a number that is too high. A metric that counts lines has no data when there are no lines. Missing data closes the alert's
  # incident, so that the next line opens another one and notifies again.
  thresholds = {
    dead_letter = {
      severity  = "ERROR"
      filter    = "${local.dead} AND metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\""
      aligner   = "ALIGN_MAX"
      group_by  = ["resource.label.subscription_id"]
      above     = 0
      duration  = "0s"
      silence   = null
      runbook   = "Twenty deliveries failed over hours. The message waits for 7 days in the dead-letter subscription that the alert names. The function's WARNING lines with its message_id give the reason. Fix that, then bring the message back: ${local.pitstop.redrive}, with the topic that the function reads as TOPIC. A request that has become useless is dropped, and handling one twice does no harm."
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
      runbook   = "The function of this subscription answers with errors, or not at all. Read its log (severity WARNING and above). Then check that it was deployed with all that it needs: terraform plan has to be empty. While messages wait, patrol still finds losses in the API."
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
      runbook   = "The function wrote more than three ERROR lines in five minutes. The line `function not configured` names the missing variables. `event rejected` names the faults of a message. The topic keeps that message for 7 days: see gcloud pubsub subscriptions seek. Patrol's lines name each thing that it could not read."
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
      runbook   = "A request came with a body that Pitstop did not send. The function took only the pointer from it (workload, incident, epoch, action and slice) and followed the ledger. So it made no call that Pitstop had not decided. The line `request body differs` names the incident and the fields. Then list who may publish. For the topics checkpoint-requests, recovery-requests and recreate-requests use gcloud pubsub topics get-iam-policy, and for the whole project gcloud projects get-iam-policy. Take that right from every account that is not one of Pitstop's functions. The audit log of Pub/Sub names the publisher, if data access logs are on."
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
      runbook   = "Pitstop had decided to delete or stop more TPUs within an hour than the brake allows. A zone that fails as a whole looks like this, and so does a fault. Held calls go on by themselves at the next full hour. If they are right, raise brake_per_zone or brake_per_project. If not, hold everything with ${local.pitstop.pause}, then take recreate out of allow and apply."
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
      runbook   = "Pitstop gave up on an incident. The line `incident closed` with outcome escalated says why, and what to do. Its whole story: ${local.pitstop.incident}. Pitstop does nothing more about that TPU until something new happens to it, or until you ask for another try: ${local.pitstop.retry}."
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
      runbook   = "Once a day patrol writes a log entry that has to come back through the sinks. The last one did not within half an hour. If patrol could not write it, its ERROR lines say so. Run terraform apply: it repairs the sinks, their writer's right to publish, and patrol's right to write. ${local.pitstop.canary} sends an entry at once and shows how far it comes. Then read the error e-mails of Cloud Logging, and the metric logging.googleapis.com/exports/error_count. Until entries arrive, patrol finds losses only by its readings, up to a minute later."
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
      runbook   = "A target refused a message of the function notify for good, so nobody read it there. The line `notification refused` gives the reason. `invalid_auth` or 401: the token was revoked. Add a version to its secret, then deploy notify again. `not_in_channel` or `channel_not_found`: nobody invited the bot. 404: the webhook no longer exists. Incidents go on meanwhile; read them with pitstop status. A target that is only unreachable raises the alert for messages that wait too long, and gets its messages when it is back."
      documents = "notification refused"
    }
  }
}

# Alerts on single lines. Cloud Run writes those of the log varlog/system about an instance.
locals {
  system_lines = "log_id(\"run.googleapis.com/varlog/system\")"

  lines = {
    crashed = {
      severity = "ERROR"
      filter   = "(jsonPayload.message=\"function panicked\" OR (${local.system_lines} AND textPayload=~\"^Container called exit[(][1-9]\"))"
      runbook  = "Pub/Sub brings the message again, so a message that always crashes its function ends as a dead letter. When it is cured, bring it back: ${local.pitstop.redrive}."
    }
    dropped = {
      severity = "ERROR"
      filter   = "jsonPayload.message=\"event rejected\" AND NOT jsonPayload.function=\"${local.functions.patrol.entry_point}\"" # the next tick repeats the work of one that failed in part
      runbook  = "The message is acknowledged, and Pub/Sub does not bring it again. Its topic keeps it for 7 days: once the fault is cured, see gcloud pubsub subscriptions seek. What the message reported, patrol mostly finds in the API."
    }
    memory = {
      severity = "ERROR"
      filter   = "${local.system_lines} AND textPayload=~\"^Memory limit of .* exceeded\""
      runbook  = "Pub/Sub brings the messages again that the instance was handling."
    }
    unstarted = {
      severity = "ERROR"
      filter   = "${local.system_lines} AND textPayload=~\"STARTUP .*probe failed\""
      runbook  = "A secret of notify that was deleted, or an exit at the start, keeps every instance from starting. Messages wait meanwhile, and patrol does not run if it is patrol's. If an upgrade brought this, apply the older release."
    }
  }
}

resource "google_monitoring_alert_policy" "line" {
  for_each = local.lines

  project               = var.project_id
  display_name          = "${var.prefix}Pitstop: ${local.alerts[each.key].title}"
  combiner              = "OR"
  severity              = each.value.severity
  notification_channels = var.notification_channels
  user_labels           = local.labels

  conditions {
    display_name = local.alerts[each.key].fires

    condition_matched_log {
      filter           = "${local.own_lines} AND ${each.value.filter}"
      label_extractors = { function = "EXTRACT(resource.labels.service_name)" }
    }
  }

  alert_strategy {
    auto_close = "1800s"

    notification_rate_limit {
      period = "3600s"
    }
  }

  documentation {
    subject   = "Pitstop in ${var.project_id}: ${local.alerts[each.key].title}"
    content   = "${local.alerts[each.key].act}\n\n${each.value.runbook}"
    mime_type = "text/markdown"
  }

  depends_on = [time_sleep.apis]
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

  # Cloud Monitoring refuses an alert on a metric that it does not know yet.
  depends_on = [time_sleep.metrics]
}

# Patrol finds all that the other functions miss, so nothing else would notice that patrol stopped. The alert counts the line at the end
# of a tick, because an acknowledged message proves no work. A project without any such line has to count as zero. Only a query can say
# that: every other condition begins with the first data, and a patrol that never ran has no data.
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
      # No line in three minutes, and the same for two minutes more: this leaves room for late lines, and for the first ticks.
      query    = "(count(sum by (project) (increase(${local.promql.ticks}{monitored_resource=\"cloud_run_revision\"}[3m])) > 0) or vector(0)) < ${length(local.watched)}"
      duration = "120s"

      evaluation_interval       = "60s"
      disable_metric_validation = true # the metric is as new as this alert
    }
  }

  alert_strategy {
    auto_close = "1800s"
  }

  documentation {
    subject   = "Pitstop in ${var.project_id}: ${local.alerts.patrol.title}"
    content   = "${local.alerts.patrol.act}\n\nOne tick a minute has to end in each watched project. It comes by the job ${google_cloud_scheduler_job.tick.name} and the function ${local.services.patrol}: `tick done` names the project, and `function not configured` names the missing variables. No line at all means that no message arrives (the subscription ${module.function["patrol"].subscription}). Right after a first apply, wait some minutes for the first tick."
    mime_type = "text/markdown"
  }

  depends_on = [time_sleep.metrics]
}
