output "dead_letter_subscription" {
  description = "The name of the subscription that keeps dead letters, or null for a function without one."
  value       = one(google_pubsub_subscription.dead_letter[*].name)
}

output "docker_repository" {
  description = "The repository of Artifact Registry that holds the function's images, or null if none was given."
  value       = google_cloudfunctions2_function.main.build_config[0].docker_repository
}

output "environment" {
  description = "The function's environment variables."
  value       = google_cloudfunctions2_function.main.service_config[0].environment_variables
}

output "name" {
  description = "The name of the function and of its Cloud Run service."
  value       = google_cloudfunctions2_function.main.name
}

output "publishes_to" {
  description = "The topics on which the function's account may publish, by environment variable."
  value       = tomap({ for env, grant in google_pubsub_topic_iam_member.publisher : env => grant.topic })
}

output "secrets" {
  description = "The secrets that the function's account may read, by environment variable."
  value       = tomap({ for env, grant in google_secret_manager_secret_iam_member.reader : env => "projects/${grant.project}/secrets/${grant.secret_id}" })
}

output "subscription" {
  description = "The name of the subscription that brings the function its messages."
  value       = google_pubsub_subscription.main.name
}

output "uri" {
  description = "The address of the function's Cloud Run service."
  value       = local.uri
}
