package show

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/view"
)

// maintainedText is the last maintenance event of a slice; empty if the API tells of none.
func maintainedText(shown []deployment.SliceShown, slice string, now time.Time) string {
	for _, s := range shown {
		if s.Slice == slice && !s.LastMaintenance.IsZero() {
			return terminal.LastMaintenance(s.LastMaintenance) + ", " + events.Span(now.Sub(s.LastMaintenance)) + " ago"
		}
	}
	return ""
}

// without names the slices whose autocheckpoint is off.
func without(shown []deployment.SliceShown) (names []string) {
	for _, s := range shown {
		if s.Autocheckpoint == "off" {
			names = append(names, s.Slice)
		}
	}
	return names
}

// AutocheckpointOff lists the slices of a workload that are ordered without autocheckpoint, and those that are ordered with it, by
// their specifications in the ledger. A slice that was never read is in neither.
func AutocheckpointOff(ctx context.Context, l *ledger.Ledger, w deployment.Workload) (off, on []view.Slice, err error) {
	for _, s := range w.Slices {
		if s.Released || s.Legacy || s.Spec == "" {
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

// NamesOf are the names of slices, in a line.
func NamesOf(all []view.Slice) string {
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// SwitchesOn says how autocheckpoint is turned on for slices of a workload. The API turns it on only at a creation.
func SwitchesOn(w deployment.Workload, off []view.Slice, p policy.Policy) string {
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
func replacing(all []view.Slice, p policy.Policy) (approval, refusal string) {
	var asks, refuses []string
	for _, s := range all {
		needed := s.Replaces()
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
func creations(w deployment.Workload, off []view.Slice) (commands []string) {
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
func heldWith(w deployment.Workload, s view.Slice) (n int) {
	for _, o := range w.Slices {
		if o.Group == s.Group && o.Zone == s.Zone {
			n++
		}
	}
	return n
}
