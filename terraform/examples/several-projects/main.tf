# One Pitstop watches the TPUs of several projects from a project of its own. It needs nothing in them but what is granted
# here: log sinks that send to its topics, the right to read TPUs and the audit log, and to write a canary a day. Nothing is
# allowed, so nothing is touched.

module "pitstop" {
  source = "../.."

  project_id       = var.project_id
  watched_projects = var.watched_projects

}

variable "project_id" {
  description = "The project that Pitstop runs in."
  type        = string
}

variable "watched_projects" {
  description = "The projects whose TPUs are watched."
  type        = set(string)
}

output "accounts" {
  description = "The account that each function acts as, for whoever owns a watched project."
  value       = module.pitstop.accounts
}

output "next" {
  description = "What to look at next."
  value       = module.pitstop.next
}
