terraform {
  required_version = ">= 1.9"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 7.45, < 8.0"
    }

    # Pitstop's module needs both. They stand here too so that the tests can replace them.
    google-beta = {
      source  = "hashicorp/google-beta"
      version = ">= 7.45, < 8.0"
    }

    time = {
      source  = "hashicorp/time"
      version = ">= 0.12, < 1.0"
    }
  }
}
