output "grants" {
  description = "The grants that were made, each as thing, function and role."
  value       = sort(flatten([for grants in values(local.on) : keys(grants)]))
}
