variable "filters" {
  description = "The filter of each source, by the source's name. Each becomes one sink in each project."
  type        = map(string)

  validation {
    condition     = length(var.filters) > 0
    error_message = "There has to be at least one filter."
  }

  validation {
    condition     = alltrue([for f in values(var.filters) : length(f) > 0 && length(f) < 20000])
    error_message = "A filter has to be shorter than 20,000 characters for Cloud Logging, and an empty one would send every log entry."
  }
}

variable "prefix" {
  description = "The beginning of the sinks' names."
  type        = string
  default     = "pitstop-"
}

variable "project_ids" {
  description = "The projects with the logs to read."
  type        = set(string)

  validation {
    condition     = length(var.project_ids) > 0 && alltrue([for p in var.project_ids : can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", p))])
    error_message = "project_ids takes the IDs of projects, at least one. Numbers and display names do not fit."
  }
}

variable "publishers" {
  description = "Other accounts that publish on the topic, as IAM names them. The binding is complete: no account outside it may publish."
  type        = set(string)
  default     = []
}

variable "topic" {
  description = "The full name of the topic that receives the entries, projects/P/topics/T."
  type        = string

  validation {
    condition     = can(regex("^projects/[^/]+/topics/[^/]+$", var.topic))
    error_message = "${var.topic} is no full name of a topic, such as projects/P/topics/T."
  }
}
