package checkpoint_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/option"

	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/checkpoint/buckettest"
)

func TestLocation(t *testing.T) {
	s := buckettest.New(time.Now, "ckpt")
	store := checkpoint.Mux{
		"gs":   checkpoint.NewBucket(option.WithHTTPClient(&http.Client{Transport: s.Transport()}), option.WithoutAuthentication()),
		"file": checkpoint.NewFiles(t.TempDir(), time.Now),
	}
	for where, covers := range map[buckettest.Location]map[string]bool{
		{Name: "US-WEST4"}:                                                 {"us-west4": true, "us-west1": false, "us-west": false},
		{Name: "US", Type: "multi-region"}:                                 {"us-west4": true, "us-central1": true, "europe-west4": false, "northamerica-northeast1": false},
		{Name: "EU", Type: "multi-region"}:                                 {"europe-west4": true, "us-west4": false},
		{Name: "NAM4", Type: "dual-region"}:                                {"us-central1": true, "us-east1": true, "us-east5": false},
		{Name: "EUR9", Type: "dual-region"}:                                {"europe-west4": false},
		{Name: "US", Type: "dual-region", Regions: "US-CENTRAL1,US-EAST5"}: {"us-central1": true, "us-east5": true, "europe-west4": false},
		{Name: "US-CENTRAL1-A", Type: "zone"}:                              {"us-central1": true, "us-east1": false},
	} {
		s.Place("ckpt", where)
		l, err := store.Location(t.Context(), "gs://ckpt/run/1")
		if err != nil {
			t.Errorf("%+v: %v", where, err)
		}
		for region, want := range covers {
			if got := l.Covers(region); got != want {
				t.Errorf("%+v covers %s: %v, want %v", where, region, got, want)
			}
		}
	}
	for where, holds := range map[buckettest.Location]map[string]bool{
		{Name: "US-WEST4"}:                    {"us-west4": true, "us-west1": false},
		{Name: "US", Type: "multi-region"}:    {"us-west4": false, "us": false},
		{Name: "NAM4", Type: "dual-region"}:   {"us-central1": true, "us-east1": true, "us-east5": false},
		{Name: "US-CENTRAL1-A", Type: "zone"}: {"us-central1": true},
	} {
		s.Place("ckpt", where)
		l, err := store.Location(t.Context(), "gs://ckpt")
		if err != nil {
			t.Errorf("%+v: %v", where, err)
		}
		for region, want := range holds {
			if got := l.Holds(region); got != want {
				t.Errorf("%+v holds for certain in %s: %v, want %v", where, region, got, want)
			}
		}
	}
	for where, words := range map[buckettest.Location][2]string{
		{Name: "US-WEST4"}:                                              {"us-west4", "us-west4"},
		{Name: "US", Type: "multi-region"}:                              {"us", ""},
		{Name: "NAM4", Type: "dual-region"}:                             {"nam4", "us-central1 us-east1"},
		{Name: "US", Type: "dual-region", Regions: "US-WEST4,US-EAST1"}: {"us (us-west4 and us-east1)", "us-west4 us-east1"},
		{Name: "US-CENTRAL1-A", Type: "zone"}:                           {"us-central1-a", "us-central1"},
	} {
		s.Place("ckpt", where)
		l, err := store.Location(t.Context(), "gs://ckpt")
		if got := [2]string{l.String(), strings.Join(l.Regions(), " ")}; err != nil || got != words {
			t.Errorf("%+v is %q, want %q, %v", where, got, words, err)
		}
	}
	for uri, want := range map[string]error{
		"gs://missing/x": checkpoint.ErrNotExist, "file:///x": checkpoint.ErrInvalid, "gs://": checkpoint.ErrInvalid, "s3://b": checkpoint.ErrInvalid,
	} {
		if _, err := store.Location(t.Context(), uri); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", uri, err, want)
		}
	}
	for status, want := range map[int]error{http.StatusForbidden: checkpoint.ErrPermission, http.StatusServiceUnavailable: checkpoint.ErrTransient} {
		s.Inject(buckettest.Fault{Method: buckettest.MethodLocate, Status: status})
		if _, err := store.Location(t.Context(), "gs://ckpt"); !errors.Is(err, want) {
			t.Errorf("answer %d: %v, want %v", status, err, want)
		}
	}
}

// TestALifecycleRuleThatDeletesTheLeaseIsSeen: a rule about other objects, about earlier versions, or one that deletes nothing, is none.
func TestALifecycleRuleThatDeletesTheLeaseIsSeen(t *testing.T) {
	s := buckettest.New(time.Now, "ckpt")
	store := checkpoint.NewBucket(option.WithHTTPClient(&http.Client{Transport: s.Transport()}), option.WithoutAuthentication())
	uri := checkpoint.Join("gs://ckpt/run/1", checkpoint.LeaseName)
	for rules, want := range map[string]bool{
		"": false, `[]`: false,
		`[{"action":{"type":"Delete"},"condition":{"age":30}}]`:                                                              true,
		`[{"action":{"type":"SetStorageClass"},"condition":{"age":30}},{"action":{"type":"Delete"},"condition":{"age":90}}]`: true,
		`[{"action":{"type":"SetStorageClass","storageClass":"NEARLINE"},"condition":{"age":30}}]`:                           false,
		`[{"action":{"type":"Delete"},"condition":{"age":30,"isLive":true,"matchesPrefix":["logs/","run/"]}}]`:               true,
		`[{"action":{"type":"Delete"},"condition":{"age":30,"matchesPrefix":["logs/"]}}]`:                                    false,
		`[{"action":{"type":"Delete"},"condition":{"age":30,"matchesSuffix":[".json"]}}]`:                                    true,
		`[{"action":{"type":"Delete"},"condition":{"age":30,"matchesSuffix":[".log"]}}]`:                                     false,
		`[{"action":{"type":"Delete"},"condition":{"isLive":false}}]`:                                                        false,
		`[{"action":{"type":"Delete"},"condition":{"numNewerVersions":3}}]`:                                                  false,
		`[{"action":{"type":"Delete"},"condition":{"daysSinceNoncurrentTime":7}}]`:                                           false,
		`[{"action":{"type":"AbortIncompleteMultipartUpload"},"condition":{"age":1}}]`:                                       false,
	} {
		s.Place("ckpt", buckettest.Location{Name: "US-WEST4", Rules: rules})
		l, err := store.Location(t.Context(), "gs://ckpt/run/1")
		if got := l.Deletes(uri); err != nil || got != want {
			t.Errorf("%s: deletes %t, want %t, %v", rules, got, want, err)
		}
	}
}
