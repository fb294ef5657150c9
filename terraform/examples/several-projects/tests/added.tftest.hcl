# Sinks and grants in watched projects belong to the installation. Where it exists, this example only prints the line that it needs.

mock_provider "google" {}

mock_provider "google-beta" {}

mock_provider "time" {}

variables {
  project_id        = "demo-project"
  pitstop_installed = true
  watched_projects  = ["training-a", "training-b"]
}

run "prints_what_the_installation_needs" {
  assert {
    condition     = length(module.pitstop) == 0 && output.terraform_tfvars == "watched_projects = [\"training-a\",\"training-b\"]"
    error_message = "A second Pitstop is deployed, or the installation does not learn which projects to watch."
  }
}
