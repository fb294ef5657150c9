package incident

import (
	"cmp"
	"slices"
	"strings"

	"pitstop.internal/shared/evidence"
)

// Stranger says why a slice that carries the workload's name does not belong to it, where Pitstop knows nothing of the slice: somebody else may
// have copied the label. While another slice exists or is coming back, a joining slice must have the same checkpoint directory, policy and
// service account, as far as it names them. A slice from before the workload was first seen may differ in policy and account, and may be the
// first to name the directory. An owner who brings back a slice that is gone may change all three, or, while other slices live, all but the
// directory.
func (w *Workload) Stranger(e evidence.Read) (why string) {
	if w.goesOnWith(e) || !w.isThereBeside(e) {
		return ""
	}
	newcomer := !orderedAt(e).Before(w.Seen)
	if e.Directory != "" && !sameDirectory(e.Directory, w.Directory) && (newcomer || w.Directory != "") {
		return "its checkpoint directory is " + e.Directory + ", and that of " + w.Name + " is " + cmp.Or(w.Directory, "not known")
	}
	return w.strangeLabels(e, newcomer)
}

// strangeLabels says which of a newcomer's policy and service account no slice of the workload has.
func (w *Workload) strangeLabels(e evidence.Read, newcomer bool) (why string) {
	var policies, accounts []string
	for i := range w.Slices {
		if s := &w.Slices[i]; s.Released.IsZero() {
			policies, accounts = append(policies, s.Label), append(accounts, s.Account)
		}
	}
	other := func(value string, known []string) bool { return value != "" && !slices.Contains(known, value) }
	switch {
	case newcomer && other(e.Facts.Label, policies):
		return "its policy is " + e.Facts.Label + ", and that of " + w.Name + " is " + cmp.Or(w.Label, "none")
	case newcomer && other(e.Facts.Account, accounts) && !slices.Contains(accounts, ""):
		return "it acts as " + e.Facts.Account + ", and " + w.Name + " as " + strings.Join(slices.Compact(slices.Sorted(slices.Values(accounts))), ", ")
	}
	return ""
}

// goesOnWith reports whether Pitstop or the owner has ordered the slice in a reading so that it goes on with the training, or together with
// another slice of the workload.
func (w *Workload) goesOnWith(e evidence.Read) bool {
	return slices.ContainsFunc(w.Slices, func(s Slot) bool {
		if s.Name == e.Slice {
			over := !s.Released.IsZero() || !s.lives()
			return (&facts{w: w}).isOurs(&s, e) || over && sameDirectory(e.Directory, w.Directory)
		}
		return e.Facts.Group != "" && s.Group == e.Facts.Group && s.Zone == e.Zone
	})
}

// isThereBeside reports whether a slice of the workload exists, or another one than that in a reading is coming back.
func (w *Workload) isThereBeside(e evidence.Read) bool {
	returns := w.Incident != nil && !w.Incident.isWatched()
	return slices.ContainsFunc(w.Slices, func(s Slot) bool {
		return s.Released.IsZero() && (s.lives() || s.Name != e.Slice && (s.Condition == evidence.Creating || returns))
	})
}
