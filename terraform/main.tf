# What is deployed, and which function does what. Everything else follows from the two maps here.

locals {
  switches = ["request_checkpoint", "early_maintenance", "restart", "recreate", "recreate_non_spot", "start_stopped"]

  # The three requests, which every function that decides may send: those that act decide too, on what came back. So may each
  # say how an incident stands, where somebody is to be told.
  requests = {
    CHECKPOINT_TOPIC = "checkpoint-requests"
    RECOVERY_TOPIC   = "recovery-requests"
    RECREATE_TOPIC   = "recreate-requests"
    UPDATE_TOPIC     = "incident-updates"
  }

  # The environment in groups, because each function is given what it reads and nothing else.
  environment = {
    every = {
      PROJECT_ID      = var.project_id
      LEDGER_DATABASE = local.database
      LOG_LEVEL       = var.log_level
    }
    decides    = { POLICY_URI = var.policy_uri, ALLOW = join(",", sort(var.allow)), LEGACY_NODE_ZONES = join(",", sort(var.legacy_node_zones)) }
    watches    = { WATCHED_PROJECTS = join(",", sort(local.watched)) }
    recognizes = { OUR_PRINCIPALS = join(",", local.our_principals) }
    keeps      = { SECRETS_DATABASE = local.secrets_database }
    destroys   = { BRAKE_PER_PROJECT = tostring(var.brake_per_project), BRAKE_PER_ZONE = tostring(var.brake_per_zone) }
    tells = {
      SLACK_CHANNEL     = var.notify.slack_channel
      WEBHOOK_URL       = var.notify.webhook_url
      NOTIFY_PER_MINUTE = tostring(var.notify.per_minute)
    }
  }

  # What is secret in those groups: each variable with the secret whose newest version it holds.
  secrets = {
    tells = {
      SLACK_BOT_TOKEN   = var.notify.slack_token_secret
      SLACK_WEBHOOK_URL = var.notify.slack_webhook_secret
      CHAT_WEBHOOK_URL  = var.notify.chat_webhook_secret
      WEBHOOK_SECRET    = var.notify.webhook_secret
    }
  }

  # Whether anybody is to be told.
  tells = anytrue([for secret in values(local.secrets.tells) : secret != ""])

  # A function is a row here, a folder in functions and a word in its name. Each call of an API is bounded at 60 seconds
  # and a message needs a handful at worst, so 300 seconds hold for all but patrol.
  functions = {
    maintenance = {
      entry_point  = "HandleMaintenance"
      topic        = "maintenance-notices"
      publishes_to = local.requests
      environment  = ["every", "decides", "watches"]
      # A slice of 1,536 workers is announced by as many entries at once, which all say the same.
      concurrency   = 20
      max_instances = 5
    }
    logevent = {
      entry_point  = "HandleLogEvent"
      topic        = "log-events"
      publishes_to = local.requests
      environment  = ["every", "decides", "watches", "recognizes"]
      # It takes the same storms. More instances would only be in each other's way at one workload's document.
      concurrency   = 20
      max_instances = 5
    }
    patrol = {
      entry_point  = "HandlePatrol"
      topic        = "patrol-ticks"
      publishes_to = merge(local.requests, { NOTICE_TOPIC = "maintenance-notices" })
      environment  = ["every", "decides", "watches", "recognizes", "keeps"]
      # One instance runs one tick, because it remembers what it saw. A tick follows operations for 50 seconds, and one
      # older than two minutes is not read any more: longer than three nothing sensible takes.
      concurrency     = 1
      max_instances   = 1
      timeout_seconds = 180
      # A tick that could not be handled is made good by the next one.
      dead_letter = false
    }
    checkpoint = {
      entry_point  = "HandleCheckpoint"
      topic        = "checkpoint-requests"
      publishes_to = local.requests
      environment  = ["every", "decides", "destroys"]
      # Requests come one per workload. What destroys stays few at a time: the brake counts calls, not their haste.
      concurrency   = 5
      max_instances = 3
    }
    recovery = {
      entry_point   = "HandleRecovery"
      topic         = "recovery-requests"
      publishes_to  = local.requests
      environment   = ["every", "decides"]
      concurrency   = 5
      max_instances = 3
    }
    recreate = {
      entry_point   = "HandleRecreate"
      topic         = "recreate-requests"
      publishes_to  = local.requests
      environment   = ["every", "decides", "destroys", "keeps"]
      concurrency   = 5
      max_instances = 3
    }
    notify = {
      entry_point  = "HandleNotify"
      topic        = "incident-updates"
      publishes_to = {}
      environment  = ["every", "tells"]
      # One instance counts what a minute brings, and tells together what waits.
      concurrency   = 40
      max_instances = 1
    }
  }

  # Where nobody is to be told there is no notify, and no topic that leads to it.
  deployed = { for name, f in local.functions : name => f if name != "notify" || local.tells }
  topics   = toset([for f in local.deployed : f.topic])

  database         = "${var.prefix}pitstop"
  secrets_database = "${var.prefix}pitstop-secrets"

  watched = length(var.watched_projects) > 0 ? var.watched_projects : toset([var.project_id])
  labels  = merge(var.labels, { app = "pitstop" })

  # Spelled out, because a function that recognizes them all cannot wait for all of them to be there.
  principal = { for name in keys(local.functions) : name => "pitstop-${var.prefix}${name}@${var.project_id}.iam.gserviceaccount.com" }

  # Those that touch a TPU: what they do is no word of an owner.
  our_principals = [for name in keys(local.functions) : local.principal[name] if length(local.watching[name]) > 0]

  archive_directory = coalesce(var.archive_directory, "${path.module}/../build")
}

resource "google_project_service" "main" {
  for_each = toset(concat(local.tells ? ["secretmanager.googleapis.com"] : [], [
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

  # Others in the project may use it.
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
  docker_repository     = local.docker_repository

  topic = google_pubsub_topic.main[each.value.topic].id
  # Who publishes on a topic that log sinks feed is granted there, in one list; see sinks.tf.
  publishes_to = { for env, topic in each.value.publishes_to : env => local.topic[topic] if contains(local.topics, topic) && !contains(keys(local.sources), topic) }
  environment = merge(concat(
    # What is empty is not set: the function takes it so, and not every API keeps empty values.
    [for group in each.value.environment : { for env, value in local.environment[group] : env => value if value != "" }],
    [{ for env, topic in each.value.publishes_to : env => local.topic[topic] if contains(keys(local.sources), topic) }],
  )...)

  secrets = merge([for group in each.value.environment : { for env, secret in lookup(local.secrets, group, {}) : env => secret if secret != "" }]...)

  concurrency     = each.value.concurrency
  max_instances   = each.value.max_instances
  timeout_seconds = lookup(each.value, "timeout_seconds", 300)
  dead_letter     = lookup(each.value, "dead_letter", true)

  # Pub/Sub's agent exists from the API's first use on. Where it is not there yet when it is granted something, a second
  # apply does what the first could not.
  depends_on = [
    google_project_service.main,
    google_pubsub_topic.main,
    google_firestore_database.secrets,
    google_artifact_registry_repository_iam_member.build,
    google_project_iam_member.build,
    google_storage_bucket_iam_member.build,
  ]
}
