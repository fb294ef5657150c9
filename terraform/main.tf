# The functions that are deployed, and the topics between them. Everything else follows from the two maps here.

locals {
  switches = ["request_checkpoint", "early_maintenance", "restart", "recreate", "recreate_non_spot", "start_stopped"]

  # Every function that decides may send the three requests: a function that acts decides too, when an answer comes back. Each may also
  # report how an incident stands, where `notify` names a target.
  requests = {
    CHECKPOINT_TOPIC = "checkpoint-requests"
    RECOVERY_TOPIC   = "recovery-requests"
    RECREATE_TOPIC   = "recreate-requests"
    UPDATE_TOPIC     = "incident-updates"
  }

  # The environment in groups. A function is given the groups with variables that it reads, and no other group.
  environment = {
    every = {
      PROJECT_ID      = var.project_id
      LEDGER_DATABASE = local.databases.ledger
      LOG_LEVEL       = var.log_level
    }
    decides    = { POLICY_URI = var.policy_uri, ALLOW = join(",", sort(var.allow)) }
    reads      = { LEGACY_NODE_ZONES = join(",", sort(var.legacy_node_zones)) }
    watches    = { WATCHED_PROJECTS = join(",", sort(local.watched)) }
    recognizes = { OUR_PRINCIPALS = join(",", local.our_principals), CONTROLLERS = join(",", sort(var.controllers)) }
    # The clusters whose Jobs patrol lists, recreate replaces, and checkpoint begins the maintenance of.
    clusters = { CLUSTERS = join(",", sort(var.clusters)) }
    # The subscription of each topic, by which patrol asks what waits for the functions.
    looks    = { SUBSCRIPTIONS = join(",", sort([for name, f in local.deployed : "${f.topic}:${var.prefix}${name}"])) }
    keeps    = { SECRETS_DATABASE = local.databases.secrets }
    destroys = { BRAKE_PER_PROJECT = tostring(var.brake_per_project), BRAKE_PER_ZONE = tostring(var.brake_per_zone) }
    tells = {
      SLACK_CHANNEL     = local.notify.slack_channel
      WEBHOOK_URL       = local.notify.webhook_url
      NOTIFY_PER_MINUTE = local.notify.per_minute
      TOLD_DATABASE     = local.databases.told
    }
  }

  # The secret variables of those groups. Each holds the newest version of its secret.
  secrets = {
    tells = {
      SLACK_BOT_TOKEN   = local.notify.slack_token_secret
      SLACK_WEBHOOK_URL = local.notify.slack_webhook_secret
      CHAT_WEBHOOK_URL  = local.notify.chat_webhook_secret
      WEBHOOK_SECRET    = local.notify.webhook_secret
    }
  }

  notify_defaults = {
    slack_channel        = ""
    slack_token_secret   = ""
    slack_webhook_secret = ""
    chat_webhook_secret  = ""
    webhook_url          = ""
    webhook_secret       = ""
    per_minute           = "20"
  }
  notify = merge(local.notify_defaults, { for key, value in var.notify : key => value if value != null })

  # Whether `notify` names a target.
  tells = anytrue([for secret in values(local.secrets.tells) : secret != ""])

  # A function is a row here, a folder in functions and a word in its name. An API call takes 60 seconds at most, and a message
  # needs a handful of calls. So a limit of 300 seconds suits all functions except patrol.
  functions = {
    maintenance = {
      entry_point  = "HandleMaintenance"
      topic        = "maintenance-notices"
      publishes_to = local.requests
      environment  = ["every", "decides", "reads", "watches"]
      # Google announces a slice of 1,536 workers with 1,536 entries at once, and all of them say the same.
      concurrency   = 20
      max_instances = 5
    }
    logevent = {
      entry_point  = "HandleLogEvent"
      topic        = "log-events"
      publishes_to = local.requests
      environment  = ["every", "decides", "reads", "watches", "recognizes"]
      # It receives the same storms. More instances would only compete for the document of one workload.
      concurrency   = 20
      max_instances = 5
    }
    patrol = {
      entry_point  = "HandlePatrol"
      topic        = "patrol-ticks"
      publishes_to = merge(local.requests, { NOTICE_TOPIC = "maintenance-notices" })
      environment  = ["every", "decides", "reads", "watches", "recognizes", "clusters", "looks", "keeps"]
      # One instance runs one tick at a time, because it remembers its last readings. A tick follows operations for 50 seconds. Patrol
      # ignores a tick that is older than two minutes, so three minutes are enough.
      concurrency     = 1
      max_instances   = 1
      timeout_seconds = 180
      # The next tick makes up for a tick that failed.
      dead_letter = false
    }
    checkpoint = {
      entry_point  = "HandleCheckpoint"
      topic        = "checkpoint-requests"
      publishes_to = local.requests
      environment  = ["every", "decides", "reads", "clusters", "destroys"]
      # A workload sends one request at a time. Few instances keep destructive calls slow: the brake counts calls, not their rate.
      concurrency   = 5
      max_instances = 3
    }
    recovery = {
      entry_point   = "HandleRecovery"
      topic         = "recovery-requests"
      publishes_to  = local.requests
      environment   = ["every", "decides", "reads"]
      concurrency   = 5
      max_instances = 3
    }
    recreate = {
      entry_point   = "HandleRecreate"
      topic         = "recreate-requests"
      publishes_to  = local.requests
      environment   = ["every", "decides", "reads", "clusters", "destroys", "keeps"]
      concurrency   = 5
      max_instances = 3
    }
    order = {
      entry_point  = "HandleOrder"
      topic        = "operator-orders"
      publishes_to = local.requests
      environment  = ["every", "decides"]
      # People press few buttons.
      concurrency   = 5
      max_instances = 2
    }
    notify = {
      entry_point  = "HandleNotify"
      topic        = "incident-updates"
      publishes_to = {}
      environment  = ["every", "tells"]
      # One instance counts the messages of a minute, and combines those that wait.
      concurrency   = 40
      max_instances = 1
    }
  }

  # Without a target in `notify` there is no function notify, and no topic that leads to it. The same goes for order without operators of the
  # console.
  deployed = { for name, f in local.functions : name => f if(name != "notify" || local.tells) && (name != "order" || contains(keys(local.consoles), "operators")) }
  topics   = toset([for f in local.deployed : f.topic])

  watched = length(var.watched_projects) > 0 ? var.watched_projects : toset([var.project_id])

  # The projects of the clusters.
  cluster_projects = toset([for c in var.clusters : length(split(":", c)) > 1 ? split(":", c)[0] : var.project_id])

  labels = merge(var.labels, { app = "pitstop" })

  # These names are spelled out: a function that recognizes all accounts cannot wait until all of them exist.
  principal = { for name in keys(local.functions) : name => "pitstop-${var.prefix}${name}@${var.project_id}.iam.gserviceaccount.com" }

  # The accounts that act on a TPU. An act of theirs is never taken for an act of the owner.
  our_principals = [for name in keys(local.functions) : local.principal[name] if length(local.watching[name]) > 0]

  archive_directory = coalesce(var.archive_directory, "${path.module}/../build")
}

resource "google_project_service" "main" {
  for_each = toset(concat(local.tells ? ["secretmanager.googleapis.com"] : [], length(local.consoles) > 0 ? ["iap.googleapis.com"] : [], local.grants_key ? ["cloudkms.googleapis.com"] : [], length(var.clusters) > 0 ? ["container.googleapis.com"] : [], [
    "artifactregistry.googleapis.com",
    "cloudbuild.googleapis.com",
    "cloudfunctions.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "cloudscheduler.googleapis.com",
    "firestore.googleapis.com",
    "iam.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "pubsub.googleapis.com",
    "run.googleapis.com",
    "storage.googleapis.com",
    "tpu.googleapis.com",
  ]))

  project = var.project_id
  service = each.value

  # Other users of the project may need it.
  disable_on_destroy = false
}

module "function" {
  source   = "./modules/function"
  for_each = local.deployed

  name           = "${var.prefix}${each.key}"
  project_id     = var.project_id
  project_number = local.project_number
  region         = var.region
  labels         = merge(local.labels, { function = each.key })
  kms_key        = var.kms_key

  entry_point           = each.value.entry_point
  archive               = "${local.archive_directory}/${each.key}.zip"
  source_bucket         = google_storage_bucket.archives.name
  build_service_account = google_service_account.build.name
  service_account       = google_service_account.function[each.key].email
  docker_repository     = local.docker_repository

  topic = google_pubsub_topic.main[each.value.topic].id
  # A topic that log sinks feed has one list of publishers instead; see sinks.tf.
  publishes_to = { for env, topic in each.value.publishes_to : env => local.topic[topic] if contains(local.topics, topic) && !contains(keys(local.sources), topic) }
  environment = merge(concat(
    # An empty variable is left out: functions treat both the same, and not every API keeps empty values.
    [for group in each.value.environment : { for env, value in local.environment[group] : env => value if value != "" }],
    [{ for env, topic in each.value.publishes_to : env => local.topic[topic] if contains(keys(local.sources), topic) }],
  )...)

  secrets = merge([for group in each.value.environment : { for env, secret in lookup(local.secrets, group, {}) : env => secret if secret != "" }]...)

  concurrency     = each.value.concurrency
  max_instances   = each.value.max_instances
  timeout_seconds = lookup(each.value, "timeout_seconds", 300)
  dead_letter     = lookup(each.value, "dead_letter", true)

  # The push subscription needs Pub/Sub's agent, and the build needs its account's grants.
  depends_on = [
    time_sleep.agents,
    time_sleep.build,
    google_pubsub_topic.main,
    google_firestore_database.main,
  ]
}
