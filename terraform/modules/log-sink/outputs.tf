output "sinks" {
  description = "The names of the sinks, by project and source."
  value       = { for key, sink in google_logging_project_sink.main : key => sink.name }
}

output "writers" {
  description = "The accounts that write for the sinks, by project and source."
  value       = { for key, sink in google_logging_project_sink.main : key => sink.writer_identity }
}
