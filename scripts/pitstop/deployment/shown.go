package deployment

import (
	"context"
	"errors"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
)

// Autocheckpoint in words: what it does, and what it costs that it is off.
// https://cloud.google.com/tpu/docs/autocheckpoint
const (
	AutocheckpointDoes = "before maintenance Google sends SIGTERM to the training, and waits until it exits or 5 minutes have passed"
	AutocheckpointCost = "maintenance that nobody announced begins at once, and the training loses what it has not saved"
)

// SliceShown is what the API shows of a slice now and the ledger does not hold.
type SliceShown struct {
	Slice           string    `json:"slice"`
	LastMaintenance time.Time `json:"last_maintenance,omitzero"`
	// Autocheckpoint is on or off; a legacy node has none.
	Autocheckpoint string `json:"autocheckpoint,omitzero"`
	// Data are the directories of the training's data, as its metadata names them.
	Data []string `json:"data,omitempty"`
	// State and Incarnation are what the ledger should know, too.
	State       string             `json:"-"`
	Incarnation events.Incarnation `json:"-"`
}

// projectZone is a zone of a project.
type projectZone struct{ project, zone string }

// zonesOf are those in which workloads have TPUs, and the zones with legacy nodes among them.
func zonesOf(all []Workload) (places []projectZone, legacy []string) {
	for _, w := range all {
		for _, s := range w.Slices {
			if s.Released || s.Condition == evidence.Gone || provider.Of(s.Zone) != provider.CloudTPU {
				continue
			}
			if at := (projectZone{w.Project, s.Zone}); !slices.Contains(places, at) {
				places = append(places, at)
			}
			if s.Legacy && !slices.Contains(legacy, s.Zone) {
				legacy = append(legacy, s.Zone)
			}
		}
	}
	return places, legacy
}

// ListSlices lists the slices of workloads as the API shows them now, by workload. It reads each zone once.
func (d Deployment) ListSlices(ctx context.Context, all []Workload) (map[string][]SliceShown, error) {
	places, legacy := zonesOf(all)
	if len(places) == 0 {
		return nil, nil
	}
	api, err := d.OpenNodeLister(ctx, legacy)
	if err != nil {
		return nil, err
	}
	type key struct {
		projectZone
		name string
	}
	found := map[key]provider.Slice{}
	var failed []error
	for _, at := range places {
		list, err := api.List(ctx, at.project, at.zone)
		failed = append(failed, err, list.Unread)
		if err == nil && (list.Partial || list.Unread == nil && !list.Legacy && slices.Contains(legacy, at.zone)) {
			failed = append(failed, errors.New("the API did not reach all of "+at.zone+"; look again in a minute"))
		}
		for _, s := range list.Slices {
			found[key{at, s.Name}] = s
		}
	}
	shown := map[string][]SliceShown{}
	for _, w := range all {
		for _, s := range w.Slices {
			if s.Released {
				continue
			}
			if is, ok := found[key{projectZone{w.Project, s.Zone}, s.Name}]; ok {
				shown[w.ID] = append(shown[w.ID], SliceShown{s.Name, is.Maintained, onOff(is.Legacy, is.Autocheckpoint), is.Data, is.State, is.Incarnation})
			}
		}
	}
	return shown, google.JoinDistinct(slices.DeleteFunc(failed, func(err error) bool { return err == nil }))
}

func onOff(legacy, on bool) string {
	switch {
	case legacy:
		return ""
	case on:
		return "on"
	}
	return "off"
}
