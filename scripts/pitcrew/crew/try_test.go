//go:build unix

package crew

import (
	"errors"
	"testing"
	"time"

	"pitstop.internal/shared/checkpoint"
)

func TestACheckpointIsCreditedToTheSignalOnlyWhereThatIsKnown(t *testing.T) {
	at := time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC)
	saved := func(uri string, seconds int) look {
		return look{found: checkpoint.Found{URI: uri, At: at.Add(time.Duration(seconds) * time.Second)}}
	}
	none, unread := look{err: &checkpoint.Missing{None: true}}, look{err: errors.New("403")}
	for name, c := range map[string]struct {
		began, before, after look
		runs                 bool
		came, saved, unsure  bool
	}{
		"the first one comes":                           {began: none, before: none, after: saved("a", 1), runs: true, came: true, saved: true},
		"one comes over it":                             {began: saved("a", 1), before: saved("a", 1), after: saved("a", 2), runs: true, came: true, saved: true},
		"nothing comes":                                 {began: saved("a", 1), before: saved("a", 1), after: saved("a", 1), runs: true},
		"others came without the signal":                {began: none, before: saved("a", 1), after: saved("b", 2), runs: true, came: true, unsure: true},
		"others came, and it ends":                      {began: none, before: saved("a", 1), after: saved("b", 2), came: true, saved: true},
		"whether others came is not known":              {began: unread, before: saved("a", 1), after: saved("b", 2), runs: true, came: true, unsure: true},
		"what there was before the signal is not known": {began: none, before: unread, after: saved("b", 2), runs: true},
		"what there is after it is not known":           {began: none, before: none, after: unread, runs: true},
	} {
		came := c.after.newer(c.before)
		if came != c.came {
			t.Errorf("%s: it came: %v", name, came)
		}
		if saved, unsure := credit(c.began, c.before, c.runs); came && (saved != c.saved || unsure != c.unsure) {
			t.Errorf("%s: saved %v, unsure %v", name, saved, unsure)
		}
	}
}
