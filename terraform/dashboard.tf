# One page that answers: is it well, what happened, how fast was it?

locals {
  charts = [
    {
      title  = "Incidents opened, by cause", stacked = true, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", group_by = ["metric.label.cause"]
      filter = local.user_metric.incidents_opened
    },
    {
      title  = "Incidents closed, by outcome", stacked = true, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", group_by = ["metric.label.outcome"]
      filter = local.user_metric.incidents_closed
    },
    {
      title  = "Reaction: from what happened to the stored request, 95th percentile in seconds", stacked = false, aligner = "ALIGN_DELTA", reducer = "REDUCE_PERCENTILE_95", group_by = ["metric.label.event_type"]
      filter = local.user_metric.reaction_seconds
    },
    {
      title  = "Dead letters that wait", stacked = true, aligner = "ALIGN_MAX", reducer = "REDUCE_SUM", group_by = ["resource.label.subscription_id"]
      filter = "${local.dead} AND metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\""
    },
    {
      title  = "Destructive calls that the brake held, by zone", stacked = true, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", group_by = ["metric.label.zone"]
      filter = local.user_metric.brake_holds
    },
    {
      title  = "Age of the oldest message, in seconds", stacked = false, aligner = "ALIGN_MAX", reducer = "REDUCE_MAX", group_by = ["resource.label.subscription_id"]
      filter = "${local.subscribed} AND metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\""
    },
    {
      title  = "Messages handled, by function and answer", stacked = true, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", group_by = ["resource.label.service_name", "metric.label.response_code_class"]
      filter = "${local.run} AND metric.type=\"run.googleapis.com/request_count\""
    },
    {
      title  = "Canaries that came back, by project", stacked = true, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", group_by = ["metric.label.project"]
      filter = local.user_metric.canaries
    },
    {
      title  = "Ticks that patrol finished, by project", stacked = false, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", group_by = ["metric.label.project"]
      filter = local.user_metric.ticks
    },
  ]
}

resource "google_monitoring_dashboard" "main" {
  project = var.project_id

  dashboard_json = jsonencode({
    displayName = "${var.prefix}Pitstop"
    labels      = local.labels
    mosaicLayout = {
      columns = 48
      tiles = [
        for i, chart in local.charts : merge({
          width  = 24
          height = 16
          widget = {
            title = chart.title
            xyChart = {
              dataSets = [{
                plotType   = chart.stacked ? "STACKED_BAR" : "LINE"
                targetAxis = "Y1"
                timeSeriesQuery = {
                  timeSeriesFilter = {
                    filter = chart.filter
                    aggregation = {
                      alignmentPeriod    = "300s"
                      perSeriesAligner   = chart.aligner
                      crossSeriesReducer = chart.reducer
                      groupByFields      = chart.group_by
                    }
                  }
                }
              }]
            }
          }
          # Zero is left out, as the API leaves it out of its answer: else no plan would ever be empty.
        }, i % 2 == 0 ? {} : { xPos = 24 }, i < 2 ? {} : { yPos = floor(i / 2) * 16 })
      ]
    }
  })

  depends_on = [google_logging_metric.counter, google_logging_metric.reaction]
}
