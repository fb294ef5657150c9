output "accounts" {
  description = "The service account of each function."
  value       = { for name, account in google_service_account.function : name => account.email }
}

output "cluster_rights" {
  description = "The accounts that call clusters, and the switches in allow, as flags of pitstop gke rbac; null without clusters."
  value = length(var.clusters) == 0 ? null : join(" ", concat(
    length(var.allow) == 0 ? [] : ["--allow=${join(",", sort(var.allow))}"],
    [for name, flag in { patrol = "", recreate = "recreate-", checkpoint = "checkpoint-" } : "--${flag}account=${google_service_account.function[name].email} --${flag}id=${google_service_account.function[name].unique_id}"],
  ))
}

output "console" {
  description = "The addresses of the console, for viewers and for operators."
  value       = { for who, service in google_cloud_run_v2_service.console : who => service.uri }
}

output "dashboard" {
  description = "The address of the dashboard."
  value       = "https://console.cloud.google.com/monitoring/dashboards/builder/${element(split("/", google_monitoring_dashboard.main.id), 3)}?project=${var.project_id}"
}

output "dead_letters" {
  description = "The subscriptions that keep the messages which no delivery could get handled."
  value       = compact(values(module.function)[*].dead_letter_subscription)
}

output "ledger" {
  description = "The Firestore database that holds workloads and incidents."
  value       = google_firestore_database.main["ledger"].id
}

output "may_change_tpus" {
  description = "The accounts that may change a TPU with the switches that allow holds now."
  value       = [for name, account in google_service_account.function : account.email if local.changes_tpus[name]]
}

output "next" {
  description = "The commands to run next."
  value       = <<-EOT
    ${length(var.allow) == 0 ? "Pitstop watches and changes nothing." : "Pitstop may: ${join(", ", sort(var.allow))}; each TPU's label pitstop-policy decides for it."}
    Watched: ${join(", ", sort(local.watched))}
    List every workload, and the steps that would follow if it died now. Run this in Pitstop's repository:
      go run ./scripts/pitstop status ${local.place}
    Read the incidents and decisions, from the second minute on:
      gcloud logging read 'resource.type="cloud_run_revision" AND jsonPayload.message=("incident opened" OR "incident closed" OR "request decided")' --project=${var.project_id} --freshness=1d
    Check that patrol runs: it writes one line a minute for each watched project:
      gcloud logging read 'resource.labels.service_name="${local.services.patrol}" AND jsonPayload.message="tick done"' --project=${var.project_id} --limit=5 --format='value(timestamp,jsonPayload.project,jsonPayload.zones,jsonPayload.faults)'
  EOT
}

output "topics" {
  description = "The full names of the topics."
  value       = { for name, topic in google_pubsub_topic.main : name => topic.id }
}

output "training_grants" {
  description = "The roles that Pitstop's accounts need on a training's bucket, service account and Shared VPC subnetwork. The examples read them from this installation's state."
  value       = local.training_grants
}
