package cloudtpu_test

import (
	"testing"

	"pitstop.internal/shared/provider/cloudtpu"
)

func TestHowAMachineBegins(t *testing.T) {
	for spec, want := range map[string]cloudtpu.StartUp{
		`{"node":{"runtimeVersion":"v2"}}`:                                                    {},
		`{"node":{"autocheckpointEnabled":true}}`:                                             {Autocheckpoint: true},
		`{"node":{"metadata":{"startup-script":"  \n"}}}`:                                     {},
		`{"node":{"metadata":{"startup-script":"python3 train.py"}}}`:                         {Script: true},
		`{"node":{"metadata":{"startup-script":"pitcrew run -- python3 train.py"}}}`:          {Script: true, Crew: true},
		`{"node":{"metadata":{"startup-script-url":"gs://b/start.sh"}}}`:                      {Script: true, URL: "gs://b/start.sh"},
		`{"node":{"serviceAccount":{"email":"tpu@demo.iam.gserviceaccount.com","scope":[]}}}`: {Account: "tpu@demo.iam.gserviceaccount.com"},
		`{"legacy_node":{"acceleratorType":"v3-8","tensorflowVersion":"2.12.0"}}`:             {Legacy: true},
	} {
		if got, err := cloudtpu.StartUpOf([]byte(spec)); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", spec, got, err, want)
		}
	}
	for _, faulty := range []string{``, `{`, `{"queued_resource":{}}`, `{"node":3}`, `{"legacy_node":3}`} {
		if got, err := cloudtpu.StartUpOf([]byte(faulty)); err == nil {
			t.Errorf("%q: %+v", faulty, got)
		}
	}
}
