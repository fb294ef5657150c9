package replay_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"pitstop.internal/functions/notify"
	"pitstop.internal/scripts/sim/world"
)

// TestPeopleAreToldOfRecordedIncidents plays incidents, every message twice, and has a program and Slack told of them on
// loopback: each step once, and how each ended.
func TestPeopleAreToldOfRecordedIncidents(t *testing.T) {
	told := map[string]bool{"preemption": true, "maintenance-approved": true, "queued-gave-up": true, "watched": true}
	for _, r := range recorded(t) {
		if !told[r.Name] {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			var mu sync.Mutex
			steps, posts := map[string]int{}, 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				body, err := io.ReadAll(q.Body)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if q.URL.Path == "/slack" {
					posts++
					_, _ = fmt.Fprintf(w, `{"ok":true,"ts":"%d"}`, posts) //nolint:errcheck // who asked notices
					return
				}
				var m struct {
					Updates []struct {
						Step     string
						Incident struct{ Incident string }
					}
				}
				if err := json.Unmarshal(body, &m); err != nil {
					t.Errorf("%v: %s", err, body)
				}
				for _, u := range m.Updates {
					steps[u.Incident.Incident+" "+u.Step]++
				}
			}))
			defer server.Close()
			s := run(t, r, world.Options{Duplicates: true, Hooks: world.Hooks{Tell: func(now func() time.Time) []notify.Target {
				hook, err := notify.NewWebhook(server.URL+"/hook", "a secret", now)
				if err != nil {
					t.Error(err)
				}
				return []notify.Target{hook, notify.NewSlackBot(server.URL+"/slack", "C1", "none")}
			}}})
			if posts != len(steps) {
				t.Errorf("Slack got %d messages, and there were %d steps", posts, len(steps))
			}
			for step, n := range steps {
				if n > 1 {
					t.Errorf("%s was reported %d times", step, n)
				}
			}
			for _, in := range s.Ended {
				if end := in.ID + " " + string(in.Outcome); steps[end] != 1 {
					t.Errorf("%s was reported %d times, of %v", end, steps[end], steps)
				}
			}
			if r.Name == "maintenance-approved" {
				asked := 0
				for step := range steps {
					if len(s.Ended) > 0 && step == s.Ended[0].ID+" approving/maintain" {
						asked++
					}
				}
				if asked != 1 {
					t.Errorf("nobody was asked to approve: %v", steps)
				}
			}
		})
	}
}
