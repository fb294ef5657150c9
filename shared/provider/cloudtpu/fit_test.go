package cloudtpu

import (
	"strings"
	"testing"

	"pitstop.internal/shared/reason"
)

// TestNoZoneIsSentWhatItDoesNotHave goes through every field that names something of a zone or a region.
func TestNoZoneIsSentWhatItDoesNotHave(t *testing.T) {
	const home, beside, abroad = "us-west4-a", "us-west4-b", "europe-west4-a"
	for name, c := range map[string]struct {
		spec string
		// beside and abroad are the results in another zone of the region and in another region: a specification, or the text of
		// the refusal.
		beside, abroad string
	}{
		"nothing of a place": {
			`{"node":{"acceleratorType":"v6e-8","networkConfig":{"network":"default","queueCount":8},"serviceAccount":{"email":"sa"}}}`, "=", "=",
		},
		"a reservation of the node": {
			`{"node":{"schedulingConfig":{"reservationName":"r"}}}`,
			"schedulingConfig.reservationName r is in us-west4-a", "schedulingConfig.reservationName r is in us-west4-a",
		},
		"a reservation of the queued resource": {
			`{"node":{},"queued_resource":{"reservationName":"projects/p/locations/us-west4-a/reservations/r"}}`,
			"reservationName projects/p/locations/us-west4-a/reservations/r is in us-west4-a",
			"reservationName projects/p/locations/us-west4-a/reservations/r is in us-west4-a",
		},
		"a reservation of the other zone": {
			`{"node":{"schedulingConfig":{"reservationName":"projects/p/locations/us-west4-b/reservations/r"}}}`, "=",
			"reservationName projects/p/locations/us-west4-b/reservations/r is in us-west4-b",
		},
		"a disk": {
			`{"node":{"dataDisks":[{"sourceDisk":"projects/p/zones/us-west4-a/disks/d"}]}}`,
			"dataDisks.sourceDisk projects/p/zones/us-west4-a/disks/d is in us-west4-a", "is in us-west4-a",
		},
		"a disk of the region": {
			`{"node":{"dataDisks":[{"sourceDisk":"projects/p/regions/us-west4/disks/d"}]}}`, "=",
			"dataDisks.sourceDisk projects/p/regions/us-west4/disks/d is in us-west4",
		},
		"a storage pool and a disk": {
			`{"node":{"bootDiskConfig":{"storagePool":"pool"},"dataDisks":[{"sourceDisk":"d"}]}}`,
			"bootDiskConfig.storagePool pool is in us-west4-a; dataDisks.sourceDisk d is in us-west4-a", "bootDiskConfig.storagePool pool",
		},
		"a key of the region": {
			`{"node":{"bootDiskConfig":{"customerEncryptionKey":{"kmsKeyName":"projects/p/locations/us-west4/keyRings/r/cryptoKeys/k"}}}}`, "=",
			"bootDiskConfig.customerEncryptionKey.kmsKeyName projects/p/locations/us-west4/keyRings/r/cryptoKeys/k is in us-west4",
		},
		"a key of the world": {
			`{"node":{"bootDiskConfig":{"customerEncryptionKey":{"kmsKeyName":"projects/p/locations/global/keyRings/r/cryptoKeys/k"}}}}`, "=", "=",
		},
		"a subnetwork": {
			`{"node":{"cidrBlock":"10.1.0.0/29","networkConfig":{"network":"n","subnetwork":"projects/p/regions/us-west4/subnetworks/s"}}}`, "=",
			"networkConfig.subnetwork projects/p/regions/us-west4/subnetworks/s is in us-west4",
		},
		"a subnetwork by its name": {
			`{"node":{"networkConfigs":[{"network":"n","subnetwork":"a"},{"network":"m","subnetwork":"b"}]}}`, "=",
			"networkConfigs.subnetwork a is in us-west4; networkConfigs.subnetwork b is in us-west4",
		},
		"the subnetwork of a network that has one everywhere": {
			`{"node":{"cidrBlock":"10.1.0.0/29","networkConfig":{"network":"projects/p/global/networks/default","queueCount":8,"subnetwork":"projects/p/regions/us-west4/subnetworks/default"}}}`, "=",
			`{"node":{"networkConfig":{"network":"projects/p/global/networks/default","queueCount":8}}}`,
		},
		"the default subnetwork": {`{"node":{"networkConfig":{"subnetwork":"default"}}}`, "=", `{"node":{"networkConfig":{}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			for to, want := range map[string]string{home: "=", beside: c.beside, abroad: c.abroad} {
				if want == "=" {
					want = c.spec
				}
				got, err := Fit([]byte(c.spec), Move{From: home, To: to})
				switch {
				case strings.HasPrefix(want, "{"):
					if err != nil || string(got) != want {
						t.Errorf("%s: %s, %v; want %s", to, got, err, want)
					}
				case !is(err, reason.CannotMove) || !strings.Contains(err.Error(), want):
					t.Errorf("%s: %s, %v; want a refusal with %q", to, got, err, want)
				}
			}
		})
	}
	const whole = `{"node":{"networkConfig":{"network":"n","subnetwork":"projects/host/regions/us-west4/subnetworks/s"}}}`
	for name, want := range map[string]string{
		"t": `{"node":{"networkConfig":{"network":"n","subnetwork":"projects/host/regions/europe-west4/subnetworks/t"}}}`,
		"projects/other/regions/europe-west4/subnetworks/t": `{"node":{"networkConfig":{"network":"n","subnetwork":"projects/other/regions/europe-west4/subnetworks/t"}}}`,
	} {
		mapped := map[string]string{"europe-west4": name, "us-west4": "never"}
		for to, want := range map[string]string{abroad: want, beside: whole} {
			got, err := Fit([]byte(whole), Move{From: home, To: to, Subnetworks: mapped})
			if err != nil || string(got) != want {
				t.Errorf("%s: %s, %v; want %s", to, got, err, want)
			}
		}
	}
	short, err := Fit([]byte(`{"node":{"networkConfig":{"network":"n","subnetwork":"s"}}}`), Move{home, abroad, map[string]string{"europe-west4": "t"}})
	if want := `{"node":{"networkConfig":{"network":"n","subnetwork":"t"}}}`; err != nil || string(short) != want {
		t.Errorf("%s, %v; want %s", short, err, want)
	}
	several := `{"node":{"networkConfigs":[{"network":"n","subnetwork":"a"},{"network":"m","subnetwork":"b"}]}}`
	if got, err := Fit([]byte(several), Move{home, abroad, map[string]string{"europe-west4": "t"}}); !is(err, reason.CannotMove) {
		t.Errorf("one subnetwork for two networks: %s, %v", got, err)
	}
	if _, err := Fit([]byte(`{"node":3}`), Move{From: home, To: beside}); !is(err, reason.Invalid) {
		t.Errorf("an invalid specification: %v", err)
	}
}
