terraform {
  required_version = ">= 1.9"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 7.45, < 8.0"
    }

    # Only this one creates the agents of Google's services before their first use; see waits.tf.
    google-beta = {
      source  = "hashicorp/google-beta"
      version = ">= 7.45, < 8.0"
    }

    # It pauses while Google propagates a change; see waits.tf.
    time = {
      source  = "hashicorp/time"
      version = ">= 0.12, < 1.0"
    }
  }
}
