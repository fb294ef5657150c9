# The example can be added to a Pitstop that another configuration deployed: it deploys no second one.

mock_provider "google" {
  mock_resource "google_monitoring_notification_channel" {
    defaults = { id = "projects/demo-project/notificationChannels/1" }
  }
}

mock_provider "google-beta" {}

mock_provider "time" {}

variables {
  project_id           = "demo-project"
  pitstop_installed    = true
  checkpoint_buckets   = ["ckpt"]
  tpu_service_accounts = ["trainer@demo-project.iam.gserviceaccount.com"]
  mail                 = "me@example.com"
}

run "prints_what_the_installation_needs" {
  assert {
    condition = length(module.pitstop) == 0 && output.terraform_tfvars == join("\n", [
      "allow = [\"request_checkpoint\",\"restart\",\"recreate\"]", "notification_channels = [\"projects/demo-project/notificationChannels/1\"]",
      "checkpoint_buckets = [\"ckpt\"]", "tpu_service_accounts = [\"trainer@demo-project.iam.gserviceaccount.com\"]",
    ])
    error_message = "A second Pitstop is deployed, or the lines for the installation are others."
  }
}
