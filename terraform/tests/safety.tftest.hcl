# What must hold whatever is asked for: nothing gets lost, nobody from outside may call, and nothing may change a TPU that
# was not allowed to. Nothing here talks to Google: the provider is made up. tests/environment.json says what each function
# reads from its environment; `go run ./scripts/dev/deployment` writes it from the functions' own configuration.

mock_provider "google" {
  mock_resource "google_pubsub_topic" {
    defaults = { id = "projects/demo-project/topics/mocked" }
  }
  mock_resource "google_service_account" {
    defaults = {
      email  = "mocked@demo-project.iam.gserviceaccount.com"
      member = "serviceAccount:mocked@demo-project.iam.gserviceaccount.com"
      name   = "projects/demo-project/serviceAccounts/mocked@demo-project.iam.gserviceaccount.com"
    }
  }
  mock_resource "google_cloudfunctions2_function" {
    defaults = { service_config = { uri = "https://mocked.run.app" } }
  }
  mock_resource "google_logging_project_sink" {
    defaults = { writer_identity = "serviceAccount:service-123456789012@gcp-sa-logging.iam.gserviceaccount.com" }
  }
  mock_resource "google_monitoring_dashboard" {
    defaults = { id = "projects/demo-project/dashboards/1" }
  }
}

mock_provider "google-beta" {
  mock_resource "google_project_service_identity" {
    defaults = {
      email  = "service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com"
      member = "serviceAccount:service-123456789012@gcp-sa-pubsub.iam.gserviceaccount.com"
    }
  }
}

# A wait that is made up takes no time.
mock_provider "time" {}

variables {
  project_id            = "demo-project"
  archive_directory     = "./tests/archives"
  notification_channels = ["projects/demo-project/notificationChannels/1"]
  checkpoint_buckets    = ["ckpt"]
  tpu_service_accounts  = ["trainer@demo-project.iam.gserviceaccount.com"]
}

run "watching" {
  # Nothing is allowed, so nothing may change a TPU: by default the roles are ones that say so.
  assert {
    condition     = alltrue([for key, grant in google_project_iam_member.tpu : grant.role == google_project_iam_custom_role.tpu[key].id]) && length(google_project_iam_member.tpu) == length(local.functions) - length(["notify", "order"])
    error_message = "With nothing allowed an account has more than its own role."
  }

  assert {
    condition     = length(output.may_change_tpus) == 0 && length(google_storage_bucket_iam_member.checkpoints) == 0 && length(google_service_account_iam_member.acts_as) == 0
    error_message = "With nothing allowed an account may change something."
  }

  assert {
    condition     = alltrue([for name, f in module.function : lookup(f.environment, "ALLOW", "") == ""])
    error_message = "With nothing allowed a function's environment allows something."
  }

  # Every function is given the variables that it reads, and no others.
  assert {
    condition = alltrue([
      for name, reads in jsondecode(file("tests/environment.json")) :
      length(setsubtract(reads.required, keys(module.function[name].environment))) == 0 &&
      length(setsubtract(keys(module.function[name].environment), setunion(reads.required, coalesce(reads.optional, [])))) == 0 &&
      alltrue([for required in reads.required : module.function[name].environment[required] != ""])
      if !contains(["console", "notify", "order"], name)
    ])
    error_message = "A function lacks a variable that it needs, or is given one that it does not read."
  }

  assert {
    condition     = { for name, reads in jsondecode(file("tests/environment.json")) : name => reads.entry_point if name != "console" } == { for name, f in local.functions : name => f.entry_point }
    error_message = "The functions deployed are not those that there are."
  }

  # One publisher for each edge, and nobody else.
  assert {
    condition = alltrue([
      for name, f in local.deployed :
      length(module.function[name].publishes_to) + length([for topic in values(f.publishes_to) : topic if contains(keys(local.sources), topic)]) == length([for topic in values(f.publishes_to) : topic if topic != "incident-updates"])
    ])
    error_message = "A function may publish where its map does not say, or may not where it does."
  }

  # What Pitstop does itself is no word of an owner: each account is known by name to those who judge that.
  assert {
    condition = alltrue([
      for name in ["logevent", "patrol"] :
      toset(split(",", module.function[name].environment.OUR_PRINCIPALS)) == toset([for f in keys(local.functions) : "pitstop-${f}@demo-project.iam.gserviceaccount.com" if !contains(["notify", "order"], f)])
    ])
    error_message = "An account of a function is not known as Pitstop's own."
  }

  # What a stranger's account begins is believed to be the owner's, so the filter names ours one by one.
  assert {
    condition = (
      strcontains(local.sources["log-events"]["tpu-audit"], join(" OR ", [for f in sort(keys(local.functions)) : "\"pitstop-${f}@demo-project.iam.gserviceaccount.com\"" if !contains(["notify", "order"], f)])) &&
      alltrue([for filters in values(local.sources) : alltrue([for f in values(filters) : !strcontains(f, "our_principals") && !strcontains(f, "pitstop-[")])])
    )
    error_message = "The sink of audit entries takes other accounts for ours, or does not know ours."
  }

  # Only the right to log is granted on the project without a condition.
  assert {
    condition = { for role, grant in google_project_iam_member.build : role => join("", grant.condition[*].expression) } == {
      "roles/logging.logWriter" = ""
      "roles/storage.objectViewer" = join(" || ", concat(
        ["resource.name == \"projects/_/buckets/gcf-v2-sources-123456789012-us-central1\""],
        [for name in sort(keys(local.functions)) : "resource.name.startsWith(\"projects/_/buckets/gcf-v2-sources-123456789012-us-central1/objects/${name}/\")"],
      ))
    }
    error_message = "The build account lacks what a build takes of the project, or holds more."
  }

  # The build account stores images only in the repository that was made for them, and every function names that one.
  assert {
    condition = (
      google_artifact_registry_repository_iam_member.build.repository == "projects/demo-project/locations/us-central1/repositories/pitstop" &&
      google_artifact_registry_repository_iam_member.build.role == "roles/artifactregistry.writer" && google_artifact_registry_repository_iam_member.build.member == google_service_account.build.member &&
      google_artifact_registry_repository.images[0].repository_id == "pitstop" && google_artifact_registry_repository.images[0].location == "us-central1" && google_artifact_registry_repository.images[0].format == "DOCKER" &&
      alltrue([for f in module.function : f.docker_repository == google_artifact_registry_repository_iam_member.build.repository])
    )
    error_message = "The build account cannot store images where the functions keep theirs, or may store them elsewhere."
  }

  # Images do not heap up, and the one that a function runs from is never deleted.
  assert {
    condition = (
      { for p in google_artifact_registry_repository.images[0].cleanup_policies : p.action => p.id } == { DELETE = "delete-after-a-month", KEEP = "keep-the-last" } &&
      flatten([for p in google_artifact_registry_repository.images[0].cleanup_policies : p.most_recent_versions[*].keep_count]) == [3] &&
      flatten([for p in google_artifact_registry_repository.images[0].cleanup_policies : p.condition[*].older_than]) == ["2592000s"] &&
      google_artifact_registry_repository.images[0].cleanup_policy_dry_run != true
    )
    error_message = "Images are kept for ever, or the last ones, or those of the last 30 days, are not."
  }

  # Ticks alone are not kept aside.
  assert {
    condition     = [for name, f in module.function : name if f.dead_letter_subscription == null] == ["patrol"]
    error_message = "A function other than patrol has no dead letter, or patrol has one."
  }

  assert {
    condition     = local.functions.patrol.max_instances == 1 && local.functions.patrol.concurrency == 1
    error_message = "Patrol remembers its last readings, so one instance has to run one tick at a time."
  }

  assert {
    condition     = alltrue([for name, topic in google_pubsub_topic.main : topic.message_retention_duration == (name == "patrol-ticks" ? "600s" : "604800s")])
    error_message = "Topics keep their messages for 7 days, ticks for 10 minutes."
  }

  # APIs stay when Pitstop goes, and so does the ledger.
  assert {
    condition     = alltrue([for api in google_project_service.main : api.disable_on_destroy == false]) && alltrue([for db in google_firestore_database.main : db.deletion_policy == "ABANDON"])
    error_message = "To destroy the deployment would take away what others use, or a database."
  }

  assert {
    condition     = { for key, db in google_firestore_database.main : key => db.name } == { ledger = "pitstop", secrets = "pitstop-secrets", told = "pitstop-told" }
    error_message = "The ledger, metadata values and what people were told are not in databases of their own."
  }

  # Patrol writes metadata values and cannot read them, recreate alone does, and nobody else touches them. No account deletes a document.
  assert {
    condition = { for key, role in google_project_iam_custom_role.database : key => join(" ", [for p in sort(role.permissions) : trimprefix(p, "datastore.entities.")]) } == {
      "ledger/checkpoint"  = "create get update"
      "ledger/logevent"    = "create get update"
      "ledger/maintenance" = "create get update"
      "ledger/patrol"      = "create get list update"
      "ledger/recovery"    = "create get update"
      "ledger/recreate"    = "create get update"
      "secrets/patrol"     = "create update"
      "secrets/recreate"   = "create get update"
    }
    error_message = "An account may do more in a database than its calls need, or lacks what they need."
  }

  # No grant is wider than its purpose.
  assert {
    condition = keys(google_project_iam_member.database) == keys(google_project_iam_custom_role.database) && alltrue([
      for key, grant in google_project_iam_member.database :
      grant.role == google_project_iam_custom_role.database[key].id &&
      one(grant.condition).expression == "resource.name == \"projects/demo-project/databases/${local.databases[split("/", key)[0]]}\""
    ])
    error_message = "A grant on one database holds for others too, or is a wider role."
  }

  assert {
    condition     = [for name, f in module.function : name if contains(keys(f.environment), "SECRETS_DATABASE")] == ["patrol", "recreate"]
    error_message = "Another function than patrol and recreate knows the database of metadata values, or one of them does not."
  }

  assert {
    condition     = length([for name, f in module.function : name if contains(keys(f.environment), "TOLD_DATABASE")]) == 0
    error_message = "Another function than notify knows the database of what people were told."
  }

  assert {
    condition     = alltrue([for grant in concat(values(google_project_iam_member.tpu), values(google_project_iam_member.database), values(google_project_iam_member.build), values(google_project_iam_member.logs)) : !contains(["roles/owner", "roles/editor", "roles/viewer"], grant.role) && !startswith(grant.member, "all")])
    error_message = "An account holds a primitive role, or everybody holds one."
  }

  assert {
    condition     = alltrue([for policy in concat(values(google_monitoring_alert_policy.threshold), values(google_monitoring_alert_policy.line), [google_monitoring_alert_policy.patrol]) : length(policy.documentation[0].content) > 80])
    error_message = "An alert does not say what to do."
  }

  # What a runbook has somebody do is a command of this deployment.
  assert {
    condition = alltrue([
      for key, verb in { dead_letter = "redrive TOPIC", brake = "pause --all --why WHY", escalated = "incident ID", canary = "canary" } :
      strcontains(google_monitoring_alert_policy.threshold[key].documentation[0].content, "`go run ./scripts/pitstop ${verb} --project demo-project`")
    ]) && strcontains(output.next, "pitstop status --project demo-project\n")
    error_message = "An alert does not name the command that its reader needs, or the output next does not."
  }

  assert {
    condition     = toset(concat(keys(google_monitoring_alert_policy.threshold), keys(google_monitoring_alert_policy.line), ["patrol", "refused"])) == toset(keys(local.alerts))
    error_message = "There is an alert too many or too few: see local.alerts."
  }

  # No wait is longer than Google's own upper bounds, and each one repeats only for a reason.
  assert {
    condition = { for name, wait in {
      apis = time_sleep.apis, agents = time_sleep.agents, build = time_sleep.build, grants = time_sleep.grants, metrics = time_sleep.metrics
    } : name => wait.create_duration } == { apis = "60s", agents = "60s", build = "120s", grants = "120s", metrics = "600s" } && length(time_sleep.key) == 0
    error_message = "A wait is longer or shorter than Google's propagation, or an apply waits for a key that was not given."
  }

  assert {
    condition     = time_sleep.apis.triggers.services == join(" ", sort(keys(google_project_service.main))) && time_sleep.metrics.triggers.metrics == join(" ", sort(values(local.metric)))
    error_message = "A new API or a new metric would not be waited for."
  }

  # Pub/Sub's agent exists before it is granted anything, and nothing asks for agents that only a key needs.
  assert {
    condition     = keys(google_project_service_identity.agent) == ["pubsub.googleapis.com"] && length(google_kms_crypto_key_iam_member.agent) == 0 && !contains(keys(google_project_service.main), "cloudkms.googleapis.com")
    error_message = "Pub/Sub's agent may not exist when it is granted something, or there are grants on a key that was not given."
  }

  assert {
    condition     = output.training_grants == { bucket = [], service_account = [], subnetwork = [] }
    error_message = "With nothing allowed a training is asked for grants."
  }
}

run "no_cluster" {
  command = plan

  assert {
    condition = (
      length(google_project_iam_member.clusters) == 0 && length(google_project_iam_custom_role.clusters) == 0 && !contains(keys(google_project_service.main), "container.googleapis.com") &&
      alltrue([for topic, sources in local.sources : alltrue([for source in keys(sources) : !startswith(source, "gke-")])]) && output.cluster_rights == null
    )
    error_message = "Without clusters there is a grant, a role, an API or a sink for GKE."
  }
}

run "clusters" {
  variables {
    watched_projects = ["demo-project", "training-a"]
    clusters         = ["us-east5/research", "us-east5-b/shared/train", "training-a:us-central1-ai1a/big"]
  }

  # Where nothing is allowed, patrol alone reaches clusters, in their projects alone, and may do nothing else there.
  assert {
    condition = (
      toset(keys(google_project_iam_member.clusters)) == toset(["demo-project/patrol", "training-a/patrol"]) &&
      alltrue([for role in google_project_iam_custom_role.clusters : toset(role.permissions) == toset(["container.clusters.connect", "container.clusters.get"])]) &&
      alltrue([for key, grant in google_project_iam_member.clusters : grant.role == google_project_iam_custom_role.clusters[key].id])
    )
    error_message = "An account may do more than reach the clusters, or may reach others."
  }

  assert {
    condition     = [for name, f in module.function : name if contains(keys(f.environment), "CLUSTERS")] == ["checkpoint", "patrol", "recreate"] && module.function["checkpoint"].environment.CLUSTERS == module.function["patrol"].environment.CLUSTERS && module.function["recreate"].environment.CLUSTERS == module.function["patrol"].environment.CLUSTERS && module.function["patrol"].environment.CLUSTERS == "training-a:us-central1-ai1a/big,us-east5-b/shared/train,us-east5/research"
    error_message = "Patrol, recreate or checkpoint does not know its clusters, or another function does."
  }

  # No filter has a name that is empty: it could select what nobody is named for.
  assert {
    condition = (
      alltrue([for name in ["logevent", "patrol"] : !contains(keys(module.function[name].environment), "CONTROLLERS")]) &&
      alltrue([for filters in values(local.sources) : alltrue([for f in values(filters) : !strcontains(f, "\"\"") && !strcontains(f, "$${")])])
    )
    error_message = "A filter names an account without a name, or a function knows a controller that nobody named."
  }

  assert {
    condition     = contains(keys(google_project_service.main), "container.googleapis.com") && contains(keys(local.sources["log-events"]), "gke-jobs")
    error_message = "The API or the sink for clusters is missing."
  }

  assert {
    condition = (
      alltrue([for flag in ["--", "--recreate-", "--checkpoint-"] : strcontains(output.cluster_rights, "${flag}account=mocked@demo-project.iam.gserviceaccount.com ${flag}id=")]) &&
      !strcontains(output.cluster_rights, "--allow")
    )
    error_message = "Nobody learns which accounts call clusters, or one of them may act there where nothing is allowed."
  }
}

run "clusters_whose_jobs_are_replaced" {
  command = plan

  variables {
    clusters = ["us-east5/research"]
    allow    = ["recreate"]
  }

  assert {
    condition = (
      toset(keys(google_project_iam_member.clusters)) == toset(["demo-project/patrol", "demo-project/recreate"]) &&
      alltrue([for role in google_project_iam_custom_role.clusters : toset(role.permissions) == toset(["container.clusters.connect", "container.clusters.get"])])
    )
    error_message = "Recreate cannot reach the clusters, or an account may do more there."
  }
}

run "clusters_whose_maintenance_begins_early" {
  command = plan

  variables {
    clusters = ["us-east5/research"]
    allow    = ["early_maintenance"]
  }

  assert {
    condition = (
      toset(keys(google_project_iam_member.clusters)) == toset(["demo-project/patrol", "demo-project/checkpoint"]) &&
      alltrue([for role in google_project_iam_custom_role.clusters : toset(role.permissions) == toset(["container.clusters.connect", "container.clusters.get"])])
    )
    error_message = "Checkpoint cannot reach the clusters, or an account may do more there."
  }
}

run "controllers" {
  command = plan

  variables {
    clusters    = ["us-east5/research"]
    controllers = ["system:serviceaccount:ray-system:kuberay-operator", "queues@fleet.iam.gserviceaccount.com"]
  }

  assert {
    condition = (
      strcontains(local.sources["log-events"]["gke-jobs"], "OR \"queues@fleet.iam.gserviceaccount.com\" OR \"system:serviceaccount:ray-system:kuberay-operator\"))") &&
      [for name, f in module.function : name if lookup(f.environment, "CONTROLLERS", "") == "queues@fleet.iam.gserviceaccount.com,system:serviceaccount:ray-system:kuberay-operator"] == ["logevent", "patrol"]
    )
    error_message = "A controller is not known to the filter, or to a function that judges owners."
  }
}

run "a_controller_that_is_a_person" {
  command = plan

  variables {
    controllers = ["ann@example.com"]
  }

  expect_failures = [var.controllers]
}

run "a_cluster_without_a_location" {
  command = plan

  variables {
    clusters = ["research"]
  }

  expect_failures = [var.clusters]
}

run "a_cluster_elsewhere" {
  command = plan

  variables {
    clusters = ["training-b:us-east5/research"]
  }

  expect_failures = [var.clusters]
}

run "nobody_is_told" {
  command = plan

  assert {
    condition     = !contains(keys(module.function), "notify") && !contains(keys(google_pubsub_topic.main), "incident-updates") && !contains(keys(google_monitoring_alert_policy.threshold), "refused") && !contains(keys(google_project_service.main), "secretmanager.googleapis.com")
    error_message = "Without a target in notify there is a function, topic, alert or API for it."
  }

  assert {
    condition     = alltrue([for name, f in module.function : !contains(keys(f.environment), "UPDATE_TOPIC") && length(f.secrets) == 0])
    error_message = "Without a target in notify a function sends updates, or may read a secret."
  }
}

run "people_are_told" {
  variables {
    tpu_roles = "predefined"
    notify = {
      slack_channel      = "C0123456789"
      slack_token_secret = "projects/demo-project/secrets/slack"
      webhook_url        = "https://example.com/pitstop"
      webhook_secret     = "projects/other-project/secrets/signature"
      per_minute         = 5
    }
  }

  # Tokens are nowhere but in Secret Manager: the function is given names of secrets, and may read those.
  assert {
    condition     = module.function["notify"].secrets == tomap({ SLACK_BOT_TOKEN = "projects/demo-project/secrets/slack", WEBHOOK_SECRET = "projects/other-project/secrets/signature" })
    error_message = "The function notify cannot read its secrets, or can read others."
  }

  assert {
    condition     = length(setintersection(keys(module.function["notify"].environment), ["SLACK_BOT_TOKEN", "WEBHOOK_SECRET"])) == 0 && alltrue([for name, f in module.function : name == "notify" || length(f.secrets) == 0])
    error_message = "A secret is written into an environment, or another function may read one."
  }

  assert {
    condition = alltrue([
      for reads in [jsondecode(file("tests/environment.json")).notify] :
      length(setsubtract(reads.required, keys(module.function["notify"].environment))) == 0 &&
      length(setsubtract(concat(keys(module.function["notify"].environment), keys(module.function["notify"].secrets)), concat(reads.required, reads.optional))) == 0
    ])
    error_message = "The function notify lacks a variable, or is given one that it does not read."
  }

  # Each function that decides may have people told, and who tells them may do nothing else: no TPU, no topic, no policy.
  assert {
    condition     = alltrue([for name, f in module.function : contains(keys(f.publishes_to), "UPDATE_TOPIC") == (name != "notify")]) && length(module.function["notify"].publishes_to) == 0 && module.function["notify"].environment.NOTIFY_PER_MINUTE == "5"
    error_message = "A function cannot have people told, or who tells them may publish, or sends more than it should."
  }

  assert {
    condition = alltrue([for grant in google_project_iam_member.tpu : grant.role == "roles/tpu.viewer"]) && length([for key, grant in google_project_iam_member.tpu : key if endswith(key, "/notify")]) == 0 && (
      { for key, role in google_project_iam_custom_role.database : key => toset(role.permissions) if endswith(key, "/notify") } == {
        "ledger/notify" = toset(["datastore.entities.get"])
        "told/notify"   = toset(["datastore.entities.create", "datastore.entities.get", "datastore.entities.update"])
      }
    ) && module.function["notify"].environment.TOLD_DATABASE == "pitstop-told"
    error_message = "The function notify may read TPUs, or cannot remember its messages."
  }

  assert {
    condition     = module.function["notify"].dead_letter_subscription != null && local.functions.notify.max_instances == 1 && contains(keys(google_monitoring_alert_policy.threshold), "refused")
    error_message = "Undelivered notifications are not kept, or several instances count the bound on messages."
  }
}

run "a_plan_knows_the_environment" {
  command = plan

  variables {
    notify = { slack_webhook_secret = "projects/demo-project/secrets/slack" }
  }

  # A plan cannot tell a name that is made up on the way, and then this is no answer at all.
  assert {
    condition     = alltrue([for name, f in module.function : f.environment.UPDATE_TOPIC == "projects/demo-project/topics/incident-updates" if name != "notify"])
    error_message = "Functions that are there cannot be given a topic that is new: the provider contradicts a plan that does not know it."
  }
}

run "a_token_is_no_secret" {
  command = plan

  variables {
    notify = { slack_channel = "C0123456789", slack_token_secret = "xoxb-1" }
  }

  expect_failures = [var.notify]
}

run "a_misspelt_key_of_notify" {
  command = plan

  variables {
    notify = { slack_chanel = "C0123456789", per_minute = "5" }
  }

  expect_failures = [var.notify]
}

run "a_token_is_no_channel" {
  command = plan

  variables {
    notify = { slack_channel = "xoxb-1", slack_token_secret = "projects/demo-project/secrets/slack" }
  }

  expect_failures = [var.notify]
}

run "an_address_that_is_a_secret" {
  command = plan

  variables {
    notify = { webhook_url = "https://hooks.slack.com/services/T0/B0/x", webhook_secret = "projects/demo-project/secrets/signature" }
  }

  expect_failures = [var.notify]
}

run "a_channel_without_its_token" {
  command = plan

  variables {
    notify = { slack_channel = "C0123456789" }
  }

  expect_failures = [var.notify]
}

run "nobody_hears_of_alerts" {
  command = plan

  variables {
    notification_channels = []
  }

  expect_failures = [check.alerts]
}

run "creating_as_an_account_that_is_not_named" {
  command = plan

  variables {
    allow                = ["recreate"]
    tpu_service_accounts = []
  }

  expect_failures = [check.recreate]
}

run "restarting_without_a_bucket" {
  command = plan

  variables {
    allow              = ["restart"]
    checkpoint_buckets = []
  }

  expect_failures = [check.recreate]
}

run "a_region_that_there_is_not" {
  command = plan

  variables {
    region = "us-east9"
  }

  expect_failures = [check.regions]
}

run "images_in_a_repository_that_is_there" {
  command = plan

  variables {
    docker_repository = "projects/demo-project/locations/us-central1/repositories/images"
  }

  assert {
    condition     = length(google_artifact_registry_repository.images) == 0 && google_artifact_registry_repository_iam_member.build.repository == var.docker_repository && !contains(keys(google_project_iam_member.build), "roles/artifactregistry.writer") && alltrue([for f in module.function : f.docker_repository == var.docker_repository])
    error_message = "Images go elsewhere than into the repository that is named, or another one is made all the same."
  }
}

run "a_second_deployment_has_images_of_its_own" {
  command = plan

  variables {
    prefix = "dev-"
  }

  assert {
    condition     = google_artifact_registry_repository.images[0].repository_id == "dev-pitstop" && endswith(google_artifact_registry_repository_iam_member.build.repository, "/repositories/dev-pitstop")
    error_message = "Two deployments in a project share a repository, and the first that goes takes the images of the other."
  }
}

run "restarting_changes_no_tpu" {
  command = plan

  variables {
    tpu_roles = "predefined"
    allow     = ["restart"]
  }

  assert {
    condition     = alltrue([for grant in google_project_iam_member.tpu : grant.role == "roles/tpu.viewer"])
    error_message = "A restart is a lease in the bucket: no account needs more on TPUs for it."
  }

  # Who verifies checkpoints reads, who writes leases writes them alone, and where nothing is recreated nobody has to know where a bucket is.
  assert {
    condition = { for key, grant in google_storage_bucket_iam_member.checkpoints : key => join("", grant.condition[*].expression) } == {
      "ckpt/checkpoint/roles/storage.objectViewer" = ""
      "ckpt/recovery/roles/storage.objectViewer"   = ""
      "ckpt/recovery/roles/storage.objectUser"     = "resource.type == \"storage.googleapis.com/Object\" && resource.name.endsWith(\"/pitstop-lease.json\")"
    }
    error_message = "An account may write another object than the lease, cannot write or read that, or reads where it has nothing to read."
  }
}

run "asking_for_saves" {
  command = plan

  variables {
    allow = ["request_checkpoint"]
  }

  assert {
    condition     = one(google_storage_bucket_iam_member.checkpoints["ckpt/checkpoint/roles/storage.objectUser"].condition).expression == "resource.type == \"storage.googleapis.com/Object\" && resource.name.endsWith(\"/pitstop-request.json\")"
    error_message = "Who asks for a save cannot leave the request in the bucket, or may write other objects."
  }
}

run "a_bucket_that_takes_no_condition" {
  command = plan

  variables {
    allow                = ["request_checkpoint"]
    checkpoint_buckets   = ["ckpt", "old"]
    fine_grained_buckets = ["old"]
  }

  assert {
    condition     = toset([for key, grant in google_storage_bucket_iam_member.checkpoints : key if length(grant.condition) > 0]) == toset(["ckpt/checkpoint/roles/storage.objectUser", "ckpt/recovery/roles/storage.objectUser"])
    error_message = "A bucket without uniform bucket-level access would be refused, or another one is written without a condition."
  }
}

run "a_bucket_that_is_not_listed" {
  command = plan

  variables {
    fine_grained_buckets = ["old"]
  }

  expect_failures = [var.fine_grained_buckets]
}

run "starting_stopped_ones" {
  command = plan

  variables {
    allow = ["start_stopped"]
  }

  assert {
    condition     = length(google_storage_bucket_iam_member.checkpoints) == 0
    error_message = "To start a stopped TPU needs no grant on a bucket."
  }
}

run "counted_lines_tell_each_time" {
  command = plan

  variables {
    labels = { team = "ml" }
  }

  assert {
    condition     = jsondecode(google_monitoring_dashboard.main.dashboard_json).labels.team == "ml"
    error_message = "The dashboard lacks labels that everything else has."
  }

  # A metric of lines is silent without one: its incident has to end, or the next line tells nobody.
  assert {
    condition = alltrue([
      for key, policy in google_monitoring_alert_policy.threshold :
      policy.conditions[0].condition_threshold[0].evaluation_missing_data == "EVALUATION_MISSING_DATA_INACTIVE" && policy.conditions[0].condition_threshold[0].duration != "0s" && policy.alert_strategy[0].auto_close == "1800s"
      if strcontains(policy.conditions[0].condition_threshold[0].filter, "logging.googleapis.com/")
    ])
    error_message = "An alert on counted lines would not end when none come."
  }

  # The first row answers what a person asks first.
  assert {
    condition = [for tile in jsondecode(google_monitoring_dashboard.main.dashboard_json).mosaicLayout.tiles : tile.widget.title if lookup(tile, "yPos", 0) == 0] == [
      "Open incidents", "Chip-hours lost, closed incidents of 7 days", "Trouble to training resumed: p50 of 7 days, in seconds", "Trouble to training resumed: p95 of 7 days, in seconds",
      "Losses missed by the logs, found by patrol, 7 days", "Dead letters that wait",
    ]
    error_message = "The numbers on top are others, or stand in another order."
  }

  assert {
    condition = alltrue([
      for i, tile in jsondecode(google_monitoring_dashboard.main.dashboard_json).mosaicLayout.tiles :
      lookup(tile, "xPos", 0) == (i < 6 ? i * 8 : (i - 6) % 2 * 24) && lookup(tile, "yPos", 0) == (i < 6 ? 0 : 10 + floor((i - 6) / 2) * 16) &&
      lookup(tile, "xPos", 1) != 0 && lookup(tile, "yPos", 1) != 0 && lookup(tile, "xPos", 0) + tile.width <= 48
    ])
    error_message = "A tile is elsewhere, or says a zero, which the API does not repeat."
  }
}

run "patrol_is_missed" {
  command = plan

  variables {
    prefix           = "dev-"
    watched_projects = ["training-a", "training-b"]
  }

  # Each watched project has to have its ticks, and one that never had any counts as none.
  assert {
    condition     = google_monitoring_alert_policy.patrol.conditions[0].condition_prometheus_query_language[0].query == "(count(sum by (project) (increase(logging_googleapis_com:user_dev_pitstop_ticks{monitored_resource=\"cloud_run_revision\"}[3m])) > 0) or vector(0)) < 2" && google_monitoring_alert_policy.patrol.conditions[0].condition_prometheus_query_language[0].duration == "120s"
    error_message = "A patrol that stopped, or never ran, would not be missed within five minutes."
  }

  assert {
    condition     = google_logging_metric.counter["ticks"].name == "dev-pitstop/ticks" && endswith(google_logging_metric.counter["ticks"].filter, "jsonPayload.message=\"tick done\"")
    error_message = "The alert for patrol does not count the line at the end of a tick."
  }

  # Only somebody who may publish on the topics, and should not, writes such a body.
  assert {
    condition     = endswith(google_logging_metric.counter["bodies_differ"].filter, "jsonPayload.message=\"request body differs\"") && strcontains(google_monitoring_alert_policy.threshold["bodies_differ"].conditions[0].condition_threshold[0].filter, "user/dev-pitstop/bodies_differ") && google_monitoring_alert_policy.threshold["bodies_differ"].conditions[0].condition_threshold[0].threshold_value == 0
    error_message = "A forged request would alert nobody."
  }
}

run "another_region" {
  command = plan

  variables {
    region = "northamerica-northeast1"
    prefix = "dev12-"
  }

  assert {
    condition     = google_storage_bucket.archives.name != "demo-project-dev12-pitstop-archives-${substr(sha256("us-central1"), 0, 6)}" && length(google_storage_bucket.archives.name) - length(var.project_id) + 30 <= 63
    error_message = "A move to another region has to make another bucket, whose name fits."
  }
}

run "replacing" {
  command = plan

  variables {
    tpu_roles              = "predefined"
    allow                  = ["recreate"]
    shared_vpc_subnetworks = ["projects/host-project/regions/us-west4/subnetworks/tpus"]
  }

  assert {
    condition     = [for name, grant in google_project_iam_member.tpu : name if grant.role == "roles/tpu.admin"] == ["demo-project/recreate"]
    error_message = "Who replaces TPUs may change them, and nobody else."
  }

  # A training with a configuration of its own makes the same grants.
  assert {
    condition = { for kind, grants in output.training_grants : kind => [for g in grants : "${g.function} ${g.role}"] } == {
      bucket          = ["checkpoint roles/storage.objectViewer", "recovery roles/storage.objectViewer", "recovery roles/storage.objectUser", "recreate roles/storage.bucketViewer"]
      service_account = ["recreate roles/iam.serviceAccountUser"]
      subnetwork      = ["recreate roles/compute.networkUser"]
    }
    error_message = "A training that is added later would grant more or less than the installation needs."
  }

  assert {
    condition     = keys(google_service_account_iam_member.acts_as) == ["trainer@demo-project.iam.gserviceaccount.com/recreate"] && keys(google_compute_subnetwork_iam_member.shared_vpc) == ["projects/host-project/regions/us-west4/subnetworks/tpus/recreate"]
    error_message = "Who creates TPUs may act as their account and use their network, and nobody else."
  }
}

run "custom_roles_hold_the_table" {
  command = plan

  variables {
    allow = ["request_checkpoint"]
  }

  assert {
    condition = alltrue([
      for key, role in google_project_iam_custom_role.tpu : toset(role.permissions) == toset([
        for row in jsondecode(file("permissions.json")) : row.permission
        if "demo-project/${row.account}" == key && row.on == "watched projects" && (length(row.switches) == 0 || contains(row.switches, "request_checkpoint"))
      ])
    ]) && length(google_project_iam_custom_role.tpu) == length(local.functions) - 1 && length(google_project_iam_member.logs) == 0
    error_message = "A custom role does not hold exactly what the table lists."
  }

  assert {
    condition     = [for key, role in google_project_iam_custom_role.tpu : key if length(setintersection(role.permissions, ["tpu.nodes.create", "tpu.nodes.delete", "tpu.nodes.performMaintenance"])) > 0] == []
    error_message = "Nothing destructive is allowed, and an account may do it."
  }

  assert {
    condition     = toset(google_project_iam_custom_role.tpu["demo-project/checkpoint"].permissions) == toset(["tpu.nodes.get", "tpu.nodes.update"])
    error_message = "To ask for a save takes reading and updating a node, and no more."
  }
}

run "custom_roles_without_a_switch_change_nothing" {
  command = plan

  assert {
    condition     = toset(flatten([for role in google_project_iam_custom_role.tpu : role.permissions])) == toset(["logging.logEntries.create", "logging.logEntries.list", "tpu.locations.list", "tpu.nodes.get", "tpu.nodes.list", "tpu.operations.list"])
    error_message = "With nothing allowed a custom role holds more than watching takes."
  }
}

run "predefined_roles" {
  command = plan

  variables {
    tpu_roles = "predefined"
  }

  assert {
    condition     = alltrue([for grant in google_project_iam_member.tpu : grant.role == "roles/tpu.viewer"]) && length(google_project_iam_custom_role.tpu) == 0 && toset([for grant in google_project_iam_member.logs : grant.role]) == toset(["roles/logging.logWriter", "roles/logging.viewer"])
    error_message = "With nothing allowed an account has more than roles/tpu.viewer, or patrol cannot write the canary or ask the audit log."
  }
}

run "several_projects" {
  command = plan

  variables {
    watched_projects = ["training-a", "training-b"]
  }

  assert {
    condition     = toset([for grant in google_project_iam_member.tpu : grant.project]) == toset(["training-a", "training-b"]) && length(google_project_iam_member.tpu) == 2 * (length(local.functions) - 1)
    error_message = "TPUs are read in the watched projects, and there alone."
  }

  assert {
    condition     = alltrue([for name in ["maintenance", "logevent", "patrol"] : module.function[name].environment.WATCHED_PROJECTS == "training-a,training-b"])
    error_message = "A function is not told which projects are watched."
  }

  assert {
    condition     = sort(flatten([for sinks in module.log_sink : keys(sinks.sinks)])) == sort(flatten([for p in ["training-a", "training-b"] : [for filters in values(local.sources) : [for source in keys(filters) : "${p}/${source}"]]]))
    error_message = "A watched project lacks a sink of a source."
  }
}

run "legacy_nodes" {
  command = plan

  variables {
    legacy_node_zones = ["us-central1-c", "us-central1-b"]
  }

  assert {
    condition     = alltrue([for name, f in local.functions : module.function[name].environment.LEGACY_NODE_ZONES == "us-central1-b,us-central1-c" if contains(f.environment, "decides")])
    error_message = "A function is not told where legacy TPU Nodes are."
  }
}

run "unknown_switch" {
  command = plan

  variables {
    allow = ["everything"]
  }

  expect_failures = [var.allow]
}

run "mistaken_names" {
  command = plan

  variables {
    checkpoint_buckets     = ["gs://ckpt"]
    policy_uri             = "policy.yaml"
    tpu_service_accounts   = ["trainer"]
    shared_vpc_subnetworks = ["tpus"]
    watched_projects       = ["123"]
    legacy_node_zones      = ["us-central1"]
    notification_channels  = ["me@example.com"]
    prefix                 = "Dev"
    ledger_deletion_policy = "delete"
    brake_per_zone         = 0
    region                 = "us-central1-a"
    ledger_location        = "US"
    labels                 = { Team = "ML" }
    log_level              = "WARN"
  }

  expect_failures = [
    var.checkpoint_buckets, var.policy_uri, var.tpu_service_accounts, var.shared_vpc_subnetworks, var.watched_projects,
    var.notification_channels, var.prefix, var.ledger_deletion_policy, var.brake_per_zone, var.region, var.ledger_location,
    var.labels, var.log_level, var.legacy_node_zones,
  ]
}

run "images_elsewhere" {
  command = plan

  variables {
    docker_repository = "projects/other-project/locations/us-central1/repositories/images"
  }

  expect_failures = [var.docker_repository]
}

run "recreating_looks_where_checkpoints_are" {
  command = plan

  variables {
    allow = ["recreate"]
  }

  assert {
    condition     = { for key, grant in google_storage_bucket_iam_member.checkpoints : key => grant.role if grant.bucket == "ckpt" && strcontains(key, "/recreate/") } == { "ckpt/recreate/roles/storage.bucketViewer" = "roles/storage.bucketViewer" }
    error_message = "Who creates a TPU in another region has to know where its checkpoints are, and no more."
  }
}
