package page_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"pitstop.internal/events"
	"pitstop.internal/shared/page"
	"pitstop.internal/shared/view"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// evil is a text from a log entry that would like to be more.
const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>` + "\x1b[31m"

// broken is an incident whose every text is evil.
func broken() view.Incident {
	return view.Incident{
		ID: "llama-8b-20261121-1", Cause: events.Cause(evil), Opened: noon.Add(-time.Hour), Phase: view.PhaseCreating, Since: noon.Add(-time.Minute), Policy: evil, Down: noon.Add(-time.Hour),
		Advice: evil, Cost: view.Cost{Cost: events.Cost{AwaySeconds: 3600, ChipHours: 16}, ChipHourPrice: 1.2},
		Troubles: []view.Trouble{{Cause: events.CausePreemption, Slice: evil, At: noon.Add(-time.Hour), Text: evil}},
		Timeline: []view.Line{
			{At: noon.Add(-time.Hour), Kind: view.LineSeen, Text: evil, Reason: evil, Phase: view.Looking}, {At: noon.Add(-50 * time.Minute), Kind: view.LineDecided, Text: evil, Phase: view.PhaseCreating},
		},
		Zones: []view.Refusal{{Place: view.Place{Zone: evil}, At: noon.Add(-30 * time.Minute), Text: evil}},
		Calls: []view.Call{{At: noon.Add(-40 * time.Minute), Function: "recreate", Method: evil, Resource: evil}},
		Would: []string{evil},
	}
}

// fleet is a fleet of so many workloads, each in an incident.
func fleet(n int) page.Fleet {
	f := page.Fleet{
		Frame: page.Frame{Title: "Fleet", Path: "/", At: noon}, Paused: evil, Past: map[string][]view.Incident{},
		Sights: []view.Sight{{Project: "demo", Ticked: noon.Add(-time.Hour), Blind: true, Failed: 1, Faults: []string{evil}, CanaryMissing: true}},
	}
	for i := range n {
		in := broken()
		w := view.Workload{
			ID: "demo/w" + strings.Repeat("x", i%30) + evil, Project: "demo", Name: evil, State: view.Recovers, Since: noon.Add(-time.Hour), Seen: noon.Add(-48 * time.Hour), Incident: &in,
			Need: &view.Need{Text: evil, Command: evil, Otherwise: evil}, IfLost: &view.Loss{Plan: view.Plan{Decisions: []view.Line{{Text: evil}}}},
			Slices: []view.Slice{{Name: evil, LastNotice: &view.Notice{Notice: events.Notice{Status: events.NoticePending, WindowStart: noon.Add(time.Hour)}, Due: noon.Add(time.Minute)}}},
		}
		f.Workloads = append(f.Workloads, w)
		f.Past[w.ID] = []view.Incident{in}
	}
	return f
}

// pages are all kinds of pages, full of evil text.
func pages(t *testing.T) map[string][]byte {
	t.Helper()
	write := func(do func(*bytes.Buffer) error) []byte {
		var out bytes.Buffer
		if err := do(&out); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	in := broken()
	return map[string][]byte{
		"fleet":  write(func(out *bytes.Buffer) error { return page.WriteFleet(out, fleet(100)) }),
		"nobody": write(func(out *bytes.Buffer) error { return page.WriteFleet(out, fleet(0)) }),
		"incident": write(func(out *bytes.Buffer) error {
			return page.WriteIncident(out, page.Incident{Frame: page.Frame{Title: in.ID, At: noon}, Workload: "demo/llama-8b", In: in})
		}),
		"kept": write(func(out *bytes.Buffer) error {
			return page.WriteIncident(out, page.Incident{Frame: page.Frame{Title: in.ID, At: noon, Alone: true}, Workload: "demo/llama-8b", In: in})
		}),
		"history": write(func(out *bytes.Buffer) error {
			return page.WriteHistory(out, page.History{Frame: page.Frame{Title: "Incidents", Path: "/incidents", At: noon}, Filter: page.Filter{Workload: evil, Zone: evil}, All: []page.Past{{Workload: "demo/llama-8b", Incident: in, Lost: []string{evil}}}, More: true})
		}),
	}
}

// TestWhateverALogEntrySaysIsText: no page has a script, an element of somebody else, a style of its own, or an address elsewhere, and each is whole.
func TestWhateverALogEntrySaysIsText(t *testing.T) {
	t.Parallel()
	for name, raw := range pages(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := html.Parse(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			ids, labels, titles := map[string]int{}, 0, 0
			for n := range doc.Descendants() {
				if n.Type != html.ElementNode {
					continue
				}
				switch n.Data {
				case "script", "img", "iframe", "object", "embed", "base":
					t.Errorf("it has an element %s", n.Data)
				case "style":
					if name != "kept" {
						t.Error("it has a style of its own")
					}
				case "h1":
					titles++
				}
				for _, a := range n.Attr {
					switch {
					case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "src":
						t.Errorf("%s has an attribute %s=%q", n.Data, a.Key, a.Val)
					case a.Key == "id":
						ids[a.Val]++
					case a.Key == "for":
						labels++
					case a.Key == "href" && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") && a.Val != "data:," && !strings.HasPrefix(a.Val, "https://console.cloud.google.com/logs/query;"):
						t.Errorf("it leads to %q", a.Val)
					case a.Key == "href" && name == "kept" && !strings.HasPrefix(a.Val, "#"):
						t.Errorf("a page that is kept leads to %q", a.Val)
					}
				}
			}
			for id, n := range ids {
				if n > 1 {
					t.Errorf("%d elements have the ID %q", n, id)
				}
			}
			if titles != 1 || labels != strings.Count(string(raw), "<label ") {
				t.Errorf("%d titles, %d labels", titles, labels)
			}
			if name != "nobody" && !strings.Contains(string(raw), "&lt;script&gt;alert(1)") {
				t.Error("the text is not there")
			}
			if len(raw) > 150<<10 && name != "fleet" {
				t.Errorf("it has %d bytes", len(raw))
			}
		})
	}
}

// TestAPicturePlacesWhatHappened on its axis, and has all of it in a table too.
func TestAPicturePlacesWhatHappened(t *testing.T) {
	t.Parallel()
	from := noon.Add(-time.Hour)
	d := page.Timeline{Title: "x", From: from, To: noon, Lanes: []page.Lane{{
		Name:  "training",
		Spans: []page.Span{{from.Add(-time.Hour), from.Add(30 * time.Minute), page.Trains, "trains"}, {from.Add(30 * time.Minute), time.Time{}, page.Away, "stands still"}, {from.Add(-2 * time.Hour), from.Add(-time.Hour), page.Away, "long ago"}},
		Marks: []page.Mark{{noon.Add(time.Minute), page.Notice, "later"}, {from, page.Trouble, "lost"}},
	}}}.Draw()
	row := d.Rows[0]
	if len(row.Spans) != 2 || row.Spans[0].X+row.Spans[0].W != row.Spans[1].X || row.Spans[0].W != row.Spans[1].W {
		t.Errorf("spans %+v", row.Spans)
	}
	if len(row.Marks) != 1 || row.Marks[0].X != row.Spans[0].X || len(d.Facts) != 3 || len(d.Legend) != 3 || len(d.Ticks) != 7 {
		t.Errorf("marks %+v, facts %+v, legend %+v, ticks %+v", row.Marks, d.Facts, d.Legend, d.Ticks)
	}
}

// TestASiteForbidsWhatItDoesNotNeed, on every answer.
func TestASiteForbidsWhatItDoesNotNeed(t *testing.T) {
	t.Parallel()
	h := page.Site{Now: func() time.Time { return noon }, Log: slog.New(slog.DiscardHandler)}.Handler()
	for path, status := range map[string]int{"/style.css": http.StatusOK, "/nothing": http.StatusNotFound} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if csp := w.Header().Get("Content-Security-Policy"); w.Code != status || !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %d, %q", path, w.Code, csp)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/style.css", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}
