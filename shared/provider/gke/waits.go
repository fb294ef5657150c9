package gke

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// waits says since when a slice waits that is being created or deleted, by the cluster's own objects, and what more is known of it: in
// what it waits, and what holds a deletion. A zero time is not known, or no wait of which anybody has to hear: a Job that waits for its turn in a queue, or one that has no Pods, which
// may have had some a moment ago. No wait begins before the Job was created, or the JobSet that has yet to make it: what a manifest
// names may be older.
func (s slot) waits(state State) (since time.Time, held string) {
	if state == Deleting {
		return s.leaves()
	}
	if state != Creating {
		return time.Time{}, ""
	}
	since, held = s.queued()
	if comes := s.comes(); since.IsZero() || !comes.IsZero() && comes.Before(since) {
		since = comes
	}
	if made := s.made(); !since.IsZero() && made.After(since) {
		since = made.UTC()
	}
	return since, held
}

// made is when the Job was created, or the JobSet where it has yet to make the Job.
func (s slot) made() (at time.Time) {
	switch {
	case s.job != nil:
		return s.job.Created
	case s.set != nil:
		return s.set.Created
	}
	return at
}

// foreground are the finalizers of an object that waits for what it owns; they name no program.
var foreground = []string{"foregroundDeletion", "orphan"}

// leaves is the wait for the end of a deletion.
func (s slot) leaves() (since time.Time, why string) {
	of, what := Meta{}, "JobSet"
	switch {
	case s.set != nil && s.set.Deleted != nil:
		of = s.set.Meta
	case s.job != nil && s.job.Deleted != nil:
		of, what = s.job.Meta, "Job"
	default:
		return since, ""
	}
	if held := slices.DeleteFunc(slices.Clone(of.Finalizers), func(f string) bool { return slices.Contains(foreground, f) }); len(held) > 0 {
		why = "the finalizer " + strings.Join(held, ", ") + " holds the " + what
	} else if n := len(slices.DeleteFunc(slices.Clone(s.pods), Pod.ended)); n > 0 {
		why = fmt.Sprintf("%d of its Pods have not ended", n)
	}
	return of.Deleted.UTC(), why
}

// comes is since when it waits for machines, or for what starts on them.
func (s slot) comes() (since time.Time) {
	if s.set != nil && s.set.Spec.Suspend || s.job != nil && s.job.Spec.Suspend {
		return since
	}
	if s.slice != nil { // its Pods may have been ready for long
		return s.slice.Status.Conditions.of("Ready").Since.UTC()
	}
	for _, p := range s.pods {
		if p.ended() || p.Deleted != nil || p.Status.Conditions.holds("Ready") {
			continue
		}
		at := p.Status.Conditions.of("Ready").Since
		if p.Spec.NodeName == "" {
			at = p.Status.Conditions.of("PodScheduled").Since
		}
		if at.IsZero() {
			at = p.Created
		}
		if since.IsZero() || at.Before(since) {
			since = at.UTC()
		}
	}
	return since
}

// waitsFor says in the cluster's words for what a Pod waits that is not ready; empty where it has a machine and only starts.
func (p Pod) waitsFor() string {
	if p.Spec.NodeName == "" {
		c := p.Status.Conditions.of("PodScheduled")
		text := "its Pod " + p.Name + " waits for a machine"
		for _, more := range []string{c.Reason, reduced(c.Message)} {
			if more != "" {
				text += ": " + more
			}
		}
		return text
	}
	for _, c := range p.Status.Containers {
		if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return "its Pod " + p.Name + " waits: " + w.Reason
		}
	}
	return ""
}

var (
	available = regexp.MustCompile(`^\d+/\d+ nodes are available: `)
	counted   = regexp.MustCompile(`^\d+ `)
)

// mostWords bounds what a reading quotes, in characters.
const mostWords = 200

// reduced are the words of a scheduler without its counts, in order: how many machines there are changes all the time, and a reading that
// changes is written.
func reduced(message string) string {
	if message, _, _ = strings.Cut(message, " preemption: "); available.MatchString(message) {
		parts := strings.Split(strings.TrimSuffix(available.ReplaceAllString(message, ""), "."), ", ")
		for i, p := range parts {
			parts[i] = counted.ReplaceAllString(p, "")
		}
		slices.Sort(parts)
		message = strings.Join(slices.Compact(parts), ", ")
	}
	return clipped(message)
}

// clipped is a text from a cluster in one line, of mostWords characters at most.
func clipped(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if all := []rune(text); len(all) > mostWords {
		return string(all[:mostWords]) + "…"
	}
	return text
}
