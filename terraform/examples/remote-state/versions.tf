terraform {
  required_version = ">= 1.9"

  # The bucket comes from -backend-config at init, because a backend takes no variables.
  backend "gcs" {
    prefix = "pitstop"
  }

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 7.45, < 8.0"
    }
  }
}
