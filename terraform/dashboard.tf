# One page. On top are the numbers that a person asks for first: how many incidents are open, what they cost, how soon training went on,
# what the logs missed, and which messages nobody could handle. The charts below them answer why.

locals {
  # Sums and percentiles of rare events need a window that is longer than the gaps between them.
  window = "7d"
  run_of = "monitored_resource=\"cloud_run_revision\""

  # Percentiles of the incidents after which training went on.
  resumed = { for q in ["0.5", "0.95"] : q => "histogram_quantile(${q}, sum by (le) (increase(${local.promql.away_seconds}_bucket{${local.run_of},outcome=\"resumed\"}[${local.window}])))" }
  reacted = { for q in ["0.5", "0.95"] : q => "histogram_quantile(${q}, sum by (le) (increase(${local.promql.reaction_seconds}_bucket{${local.run_of}}[${local.window}])))" }

  scores = [
    {
      # The mean of each project's last ticks with an open incident, rounded up. The hundredth absorbs rounding errors of the division. Ticks
      # without one make a zero. Without a tick that counted there is no number, because a zero would look like peace.
      title = "Open incidents"
      query = "ceil(sum(sum by (project) (increase(${local.promql.open_incidents}_sum{${local.run_of}}[5m])) / sum by (project) (increase(${local.promql.open_incidents}_count{${local.run_of}}[5m]))) - 0.01) or 0 * (sum(increase(${local.promql.ticks_counted}{${local.run_of}}[5m])) > 0)"
    },
    {
      title = "Chip-hours lost, closed incidents of 7 days"
      query = "sum(increase(${local.promql.chip_hours}_sum{${local.run_of}}[${local.window}])) or vector(0)"
    },
    {
      title = "Trouble to training resumed: p50 of 7 days, in seconds"
      query = local.resumed["0.5"]
    },
    {
      title = "Trouble to training resumed: p95 of 7 days, in seconds"
      query = local.resumed["0.95"]
    },
    {
      title = "Losses missed by the logs, found by patrol, 7 days"
      query = "sum(increase(${local.promql.found_by_patrol}{${local.run_of}}[${local.window}])) or vector(0)"
    },
    {
      title    = "Dead letters that wait"
      filter   = "${local.dead} AND metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\""
      aligner  = "ALIGN_MAX"
      reducer  = "REDUCE_SUM"
      group_by = []
      alarm    = 0.5 # one is too many; the API leaves out a zero
    },
  ]

  charts = [
    {
      title = "Trouble to training resumed, trailing 7 days, in seconds", stacked = false
      lines = [{ query = local.resumed["0.5"], legend = "p50" }, { query = local.resumed["0.95"], legend = "p95" }]
    },
    {
      title = "Trouble to the stored request that follows, trailing 7 days, in seconds", stacked = false
      lines = [{ query = local.reacted["0.5"], legend = "p50" }, { query = local.reacted["0.95"], legend = "p95" }]
    },
    {
      title = "Incidents opened, by cause", stacked = true
      lines = [{ filter = local.user_metric.incidents_opened, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", group_by = ["metric.label.cause"] }]
    },
    {
      title = "Incidents closed, by outcome", stacked = true
      lines = [{ filter = local.user_metric.incidents_closed, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", group_by = ["metric.label.outcome"] }]
    },
    {
      title = "Chip-hours lost, trailing day, by outcome", stacked = false
      lines = [{ query = "sum by (outcome) (increase(${local.promql.chip_hours}_sum{${local.run_of}}[1d]))" }]
    },
    {
      title = "Losses missed by the logs, found by patrol, by cause", stacked = true
      lines = [{ filter = local.user_metric.found_by_patrol, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", group_by = ["metric.label.cause"] }]
    },
    {
      title = "Dead letters that wait, by subscription", stacked = true
      lines = [{
        filter  = "${local.dead} AND metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\""
        aligner = "ALIGN_MAX", reducer = "REDUCE_SUM", group_by = ["resource.label.subscription_id"]
      }]
    },
    {
      title = "Age of the oldest message, in seconds", stacked = false
      lines = [{
        filter  = "${local.subscribed} AND metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\""
        aligner = "ALIGN_MAX", reducer = "REDUCE_MAX", group_by = ["resource.label.subscription_id"]
      }]
    },
    {
      title = "Destructive calls that the brake held, by zone", stacked = true
      lines = [{ filter = local.user_metric.brake_holds, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", group_by = ["metric.label.zone"] }]
    },
    {
      title = "Messages handled, by function and answer", stacked = true
      lines = [{
        filter  = "${local.run} AND metric.type=\"run.googleapis.com/request_count\""
        aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", group_by = ["resource.label.service_name", "metric.label.response_code_class"]
      }]
    },
    {
      title = "Canaries that came back, by project", stacked = true
      lines = [{ filter = local.user_metric.canaries, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", group_by = ["metric.label.project"] }]
    },
    {
      title = "Ticks that patrol finished, by project", stacked = false
      lines = [{ filter = local.user_metric.ticks, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", group_by = ["metric.label.project"] }]
    },
  ]

  # A score is a sixth of the width, a chart a half.
  score_height = 10
  chart_height = 16

  # What each line and each score asks, as the API takes it.
  asks = [for w in concat(local.scores, local.charts) : [
    for l in lookup(w, "lines", [w]) : can(l.query) ? jsonencode({ prometheusQuery = l.query }) : jsonencode({
      timeSeriesFilter = {
        filter = l.filter
        aggregation = merge(
          { alignmentPeriod = "300s", perSeriesAligner = l.aligner, crossSeriesReducer = l.reducer },
          length(l.group_by) == 0 ? {} : { groupByFields = l.group_by },
        )
      }
    })
  ]]

  # Zero is left out, as the API leaves it out of its answer: otherwise no plan would ever be empty.
  tiles = concat(
    [for i, score in local.scores : merge(
      {
        width  = 8
        height = local.score_height
        widget = {
          title = score.title
          scorecard = merge(
            { timeSeriesQuery = jsondecode(local.asks[i][0]) },
            can(score.alarm) ? { thresholds = [{ value = score.alarm, color = "RED", direction = "ABOVE" }] } : {},
          )
        }
      },
      i == 0 ? {} : { xPos = i * 8 },
    )],
    [for i, chart in local.charts : merge(
      {
        width  = 24
        height = local.chart_height
        yPos   = local.score_height + floor(i / 2) * local.chart_height
        widget = {
          title = chart.title
          xyChart = {
            dataSets = [for j, line in chart.lines : merge(
              {
                plotType        = chart.stacked ? "STACKED_BAR" : "LINE"
                targetAxis      = "Y1"
                timeSeriesQuery = jsondecode(local.asks[length(local.scores) + i][j])
              },
              can(line.legend) ? { legendTemplate = line.legend } : {},
            )]
          }
        }
      },
      i % 2 == 0 ? {} : { xPos = 24 },
    )],
  )
}

resource "google_monitoring_dashboard" "main" {
  project = var.project_id

  dashboard_json = jsonencode({
    displayName  = "${var.prefix}Pitstop"
    labels       = local.labels
    mosaicLayout = { columns = 48, tiles = local.tiles }
  })

  depends_on = [google_logging_metric.counter, google_logging_metric.distribution]
}
