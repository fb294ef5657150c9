package incident_test

import "pitstop.internal/shared/policy"

var smaller = policy.Shape{Accelerator: "v5litepod-8", Zones: []string{"us-central1-a"}}
