package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
)

// Autocheckpoint in words: what it does, and what it costs that it is off.
// https://cloud.google.com/tpu/docs/autocheckpoint
const (
	autocheckpointDoes = "before maintenance Google sends SIGTERM to the training, and waits until it exits or 5 minutes have passed"
	autocheckpointCost = "maintenance that nobody announced begins at once, and the training loses what it has not saved"
)

// shownNow is what the API shows of a slice now and the ledger does not hold.
type shownNow struct {
	Slice           string    `json:"slice"`
	LastMaintenance time.Time `json:"last_maintenance,omitzero"`
	// Autocheckpoint is on or off; a legacy node has none.
	Autocheckpoint string `json:"autocheckpoint,omitzero"`
	// Data are the directories of the training's data, as its metadata names them.
	Data []string `json:"data,omitempty"`
}

// projectZone is a zone of a project.
type projectZone struct{ project, zone string }

// zonesOf are those in which workloads have TPUs, and the zones with legacy nodes among them.
func zonesOf(all []incident.Workload) (places []projectZone, legacy []string) {
	for _, w := range all {
		for _, s := range w.Slices {
			if s.IsReleased() || s.Condition == incident.Gone || provider.Of(s.Zone) != provider.CloudTPU {
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

// shows lists the slices of workloads as the API shows them now, by workload. It reads each zone once.
func (d deployment) shows(ctx context.Context, all []incident.Workload) (map[string][]shownNow, error) {
	places, legacy := zonesOf(all)
	if len(places) == 0 {
		return nil, nil
	}
	api, err := d.tpus(ctx, legacy)
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
	shown := map[string][]shownNow{}
	for _, w := range all {
		for _, s := range w.Slices {
			if s.IsReleased() {
				continue
			}
			if is, ok := found[key{projectZone{w.Project, s.Zone}, s.Name}]; ok {
				shown[w.ID] = append(shown[w.ID], shownNow{s.Name, is.Maintained, onOff(is.Legacy, is.Autocheckpoint), is.Data})
			}
		}
	}
	return shown, together(slices.DeleteFunc(failed, func(err error) bool { return err == nil }))
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

// maintainedText is the last maintenance event of a slice; empty if the API tells of none.
func maintainedText(shown []shownNow, slice string, now time.Time) string {
	for _, s := range shown {
		if s.Slice == slice && !s.LastMaintenance.IsZero() {
			return lastMaintenance(s.LastMaintenance) + ", " + events.Span(now.Sub(s.LastMaintenance)) + " ago"
		}
	}
	return ""
}

// without names the slices whose autocheckpoint is off.
func without(shown []shownNow) (names []string) {
	for _, s := range shown {
		if s.Autocheckpoint == "off" {
			names = append(names, s.Slice)
		}
	}
	return names
}

// autocheckpointOff lists the slices of a workload that are ordered without autocheckpoint, and those that are ordered with it, by
// their specifications in the ledger. A slice that was never read is in neither.
func autocheckpointOff(ctx context.Context, l *ledger.Ledger, w incident.Workload) (off, on []incident.Slot, err error) {
	for _, s := range w.Slices {
		if s.IsReleased() || s.Legacy || s.Spec == "" {
			continue
		}
		spec, err := l.Spec(ctx, s.Spec)
		if errors.Is(err, ledger.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		up, err := cloudtpu.StartUpOf(spec)
		switch {
		case err != nil || up.Legacy: // check says what is wrong with it
		case up.Autocheckpoint:
			on = append(on, s)
		default:
			off = append(off, s)
		}
	}
	return off, on, nil
}

// namesOf are the names of slices, in a line.
func namesOf(all []incident.Slot) string {
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// switchesOn says how autocheckpoint is turned on for slices of a workload. The API turns it on only at a creation.
func switchesOn(w incident.Workload, off []incident.Slot, p policy.Policy) string {
	byHand := "make sure that the training saves on SIGTERM, then delete it and create it again with autocheckpoint: " +
		strings.Join(creations(w, off), "; ")
	approval, refusal := replacing(off, p)
	switch on := p.Autocheckpoint == policy.AutocheckpointOn; {
	case on && refusal == "":
		return "the policy turns it on when Pitstop creates the slice again" + approval
	case on:
		return "the policy turns it on when Pitstop creates the slice again, but " + refusal + ": allow that, or " + byHand
	case p.Name == "" || p.Unknown || policy.Preset(p.Name): // there is nothing to write it into
		return byHand + "; or write autocheckpoint: on into a policy of the policy file and attach that policy"
	case refusal == "":
		return byHand + "; or write autocheckpoint: on into its policy, which turns it on when Pitstop creates it again" + approval
	}
	return byHand + "; or write autocheckpoint: on into its policy and allow that Pitstop creates it again: " + refusal
}

// replacing says what of a policy stands against creating slices again: that a person has to approve, or that it is not allowed.
func replacing(all []incident.Slot, p policy.Policy) (approval, refusal string) {
	var asks, refuses []string
	for _, s := range all {
		needed := policy.RecreateNonSpot
		if s.Reclaimable {
			needed = policy.Recreate
		}
		level := p.Switches.Level(needed)
		text := incident.Workload{}.Forbids(needed, level, p)
		switch {
		case level == policy.Ask && !slices.Contains(asks, text):
			asks = append(asks, text)
		case level == policy.No && !slices.Contains(refuses, text):
			refuses = append(refuses, text)
		}
	}
	if len(asks) > 0 {
		approval = ", once a person approves (" + strings.Join(asks, "; ") + ")"
	}
	return approval, strings.Join(refuses, ", and ")
}

// creations are the commands that create slices with autocheckpoint.
func creations(w incident.Workload, off []incident.Slot) (commands []string) {
	for _, s := range off {
		command := "gcloud alpha compute tpus tpu-vm create " + s.Name + " --autocheckpoint-enabled --zone " + s.Zone + " ..."
		if s.Group != "" {
			command = "gcloud alpha compute tpus queued-resources create " + s.Group + " --autocheckpoint-enabled --zone " + s.Zone
			if among := heldWith(w, s); among > 1 {
				command += " --node-count " + strconv.Itoa(among) + " ... (once for all its slices)"
			} else {
				command += " --node-id " + s.Name + " ..."
			}
		}
		if !slices.Contains(commands, command) {
			commands = append(commands, command)
		}
	}
	return commands
}

// heldWith counts the slices that the queued resource of a slice holds.
func heldWith(w incident.Workload, s incident.Slot) (n int) {
	for _, o := range w.Slices {
		if o.Group == s.Group && o.Zone == s.Zone {
			n++
		}
	}
	return n
}
