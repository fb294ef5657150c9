package page_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"pitstop.internal/events"
	"pitstop.internal/shared/page"
	"pitstop.internal/shared/saving"
	"pitstop.internal/shared/view"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// evil is a text from a log entry that would like to be more.
const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>` + "\x1b[31m\u202e"

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
		Frame: page.Frame{Title: "Fleet", Path: "/", At: noon}, Paused: evil, Next: evil, Past: map[string][]view.Past{},
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
		f.Past[w.ID] = []view.Past{in.Past(w.ID, nil)}
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
	one := func(alone bool) []byte {
		return write(func(out *bytes.Buffer) error {
			w := fleet(1).Workloads[0]
			return page.WriteIncident(out, page.Incident{Frame: page.Frame{Title: in.ID, At: noon, Alone: alone}, Of: w, In: in})
		})
	}
	past := in.Past("demo/llama-8b"+evil, []string{evil})
	past.Outcome, past.Closed, past.Took = view.Resumed, noon, map[view.Phase]float64{view.PhaseCreating: 300}
	frame := page.Frame{Title: "Incidents", Path: "/incidents", At: noon}
	filter := page.Filter{Workload: evil, Zone: evil, Cause: evil}
	return map[string][]byte{
		"fleet":      write(func(out *bytes.Buffer) error { return page.WriteFleet(out, fleet(100)) }),
		"kept fleet": write(func(out *bytes.Buffer) error { return page.KeepFleet(out, fleet(3)) }),
		"kept report": write(func(out *bytes.Buffer) error {
			r := page.Report{Frame: page.Frame{Title: evil, At: noon}, Parts: []page.Part{{Lines: []string{evil}}, {Title: evil, Rows: [][]string{{evil, "b"}, {"c", evil}}}}}
			months := page.Columns{Name: "months", Title: evil, Unit: "losses"}
			months.Add("2026-11", evil, 2)
			r.Parts = append(r.Parts, months.Part(), page.Part{
				Cascade: &page.Cascade{Name: "cascade", Title: evil, Whole: evil, Taken: []page.Step{{Name: evil, Says: evil, Size: 1}}, Left: page.Step{Name: evil, Size: 2}},
				Strips: &page.Strips{Name: "strips", Title: evil, From: noon.Add(-time.Hour), To: noon, Lanes: []page.Strip{
					{Name: evil, Still: []page.Stretch{{noon.Add(-time.Minute), noon}}, Marks: []page.Mark{{At: noon, Kind: page.Trouble, Says: evil}}},
				}},
				Curve: &page.Curve{Name: "curve", Title: evil, Points: []page.Reached{{time.Minute, 1, 2, 3}, {time.Hour, 4, 5, 6}}, Here: time.Minute, Best: time.Hour},
			})
			return page.WriteReport(out, r)
		}),
		"nobody": write(func(out *bytes.Buffer) error {
			return page.WriteFleet(out, page.Fleet{Frame: page.Frame{Title: "Fleet", At: noon}})
		}),
		"incident":      one(false),
		"kept incident": one(true),
		"history": write(func(out *bytes.Buffer) error {
			return page.WriteHistory(out, page.History{Frame: frame, Filter: filter, All: []view.Past{past}, Before: evil})
		}),
		"losses": write(func(out *bytes.Buffer) error {
			return page.WriteLosses(out, page.Losses{Frame: frame, Filter: filter, All: []view.Past{past}})
		}),
		"time": write(func(out *bytes.Buffer) error {
			f := fleet(30)
			habit := saving.Of(f.Workloads[0], 3*time.Hour, false, saving.History{Losses: 3, Trained: 100 * time.Hour}, 1)
			return page.WriteTime(out, page.Time{
				Frame: frame, Filter: filter, From: noon.Add(-day), To: noon, Partly: true, More: true, Workloads: f.Workloads, Past: f.Past, Saves: []page.Saves{{evil, habit}, {evil, habit}},
			})
		}),
		"without time": write(func(out *bytes.Buffer) error {
			return page.WriteTime(out, page.Time{Frame: frame, Filter: filter, From: noon, To: noon})
		}),
		"without losses": write(func(out *bytes.Buffer) error { return page.WriteLosses(out, page.Losses{Frame: frame}) }),
	}
}

// TestWhateverALogEntrySaysIsText: no page has a script, an element of somebody else, a style of its own, or an address elsewhere, and each is whole.
func TestWhateverALogEntrySaysIsText(t *testing.T) {
	t.Parallel()
	for name, raw := range pages(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole(t, raw)
			doc, err := html.Parse(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			kept := strings.HasPrefix(name, "kept")
			ids, refers, counts := map[string]int{}, []string{}, map[string]int{}
			for n := range doc.Descendants() {
				if n.Type != html.ElementNode {
					continue
				}
				counts[n.Data]++
				switch {
				case slices.Contains([]string{"script", "img", "iframe", "object", "embed", "base"}, n.Data):
					t.Errorf("it has an element %s", n.Data)
				case n.Data == "style" && !kept:
					t.Error("it has a style of its own")
				case n.Data == "svg" && attribute(n, "aria-hidden") == "" && (n.FirstChild == nil || title(n) == ""):
					t.Error("a picture has no title")
				case n.Data == "th" && attribute(n, "scope") == "":
					t.Error("a header of a table does not say of what")
				}
				for _, a := range n.Attr {
					switch {
					case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "src":
						t.Errorf("%s has an attribute %s=%q", n.Data, a.Key, a.Val)
					case a.Key == "id":
						ids[a.Val]++
					case a.Key == "for", a.Key == "aria-labelledby":
						refers = append(refers, strings.Fields(a.Val)...)
					case a.Key == "href" && kept && !strings.HasPrefix(a.Val, "#"):
						t.Errorf("a page that is kept leads to %q", a.Val)
					case a.Key == "href" && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") && a.Val != "data:," && !strings.HasPrefix(a.Val, "https://console.cloud.google.com/logs/query;"):
						t.Errorf("it leads to %q", a.Val)
					}
				}
			}
			for _, r := range refers {
				if ids[r] == 0 {
					t.Errorf("it has no %q, to which it refers", r)
				}
			}
			for id, n := range ids {
				if n > 1 {
					t.Errorf("%d elements have the ID %q", n, id)
				}
			}
			if counts["h1"] != 1 || counts["main"] != 1 || counts["label"] != counts["input"]+counts["select"] {
				t.Errorf("it has %v", counts)
			}
			if name != "nobody" && name != "without losses" && !strings.Contains(string(raw), "&lt;script&gt;alert(1)") {
				t.Error("the text is not there")
			}
			if strings.ContainsAny(string(raw), "\x1b\u202e") {
				t.Error("a character is there that nobody sees")
			}
		})
	}
}

// whole holds that every element of a page that begins also ends, and in its place: a parser of browsers mends what is not.
func whole(t *testing.T, raw []byte) {
	t.Helper()
	never := []string{"meta", "link", "input", "br"}
	var open []string
	for z := html.NewTokenizer(bytes.NewReader(raw)); ; {
		switch z.Next() {
		case html.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) || len(open) > 0 {
				t.Errorf("%v, and %v are open", z.Err(), open)
			}
			return
		case html.StartTagToken:
			if tag, _ := z.TagName(); !slices.Contains(never, string(tag)) {
				open = append(open, string(tag))
			}
		case html.EndTagToken:
			tag, _ := z.TagName()
			if n := len(open); n == 0 || open[n-1] != string(tag) {
				t.Fatalf("%s ends, and %v are open", tag, open)
			}
			open = open[:len(open)-1]
		default:
		}
	}
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// title is that of a picture.
func title(svg *html.Node) string {
	for n := range svg.ChildNodes() {
		if n.Data == "title" && n.FirstChild != nil {
			return n.FirstChild.Data
		}
	}
	return ""
}

// ordinary is a fleet of 100 workloads with the names and the texts of a real one: each has lost its slice three times today.
func ordinary() page.Fleet {
	f := page.Fleet{Frame: page.Frame{Title: "Fleet", Path: "/", At: noon}, Past: map[string][]view.Past{}}
	for i := range 100 {
		name := fmt.Sprintf("llama-8b-pretrain-%d", i)
		w := view.Workload{
			ID: "research-project/" + name, Project: "research-project", Name: name, State: view.Trains, Since: noon.Add(-time.Hour), Seen: noon.Add(-48 * time.Hour),
			IfLost: &view.Loss{Plan: view.Plan{Decisions: []view.Line{
				{Text: "recreate: delete " + name + " first"}, {Text: "create " + name + " in us-west4-a"}, {Text: "admit training to the new slice"}, {Text: "wait for progress past step 48,000"},
			}}},
		}
		for k := range 3 {
			at := noon.Add(-time.Duration(6*k+2) * time.Hour)
			f.Past[w.ID] = append(f.Past[w.ID], view.Past{
				Workload: w.ID, ID: fmt.Sprintf("%s-20261121-%d", name, k+1), Cause: events.CausePreemption, Opened: at, Down: at, Closed: at.Add(20 * time.Minute), Outcome: view.Resumed,
				Cost: view.Cost{Cost: events.Cost{AwaySeconds: 1200}},
			})
		}
		f.Workloads = append(f.Workloads, w)
	}
	return f
}

// TestAPageOfAHundredRowsIsSmall.
func TestAPageOfAHundredRowsIsSmall(t *testing.T) {
	t.Parallel()
	f := ordinary()
	h := page.History{Frame: page.Frame{Title: "Incidents", Path: "/incidents", At: noon}}
	for _, w := range f.Workloads {
		h.All = append(h.All, f.Past[w.ID][0])
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"fleet": func(out *bytes.Buffer) error { return page.WriteFleet(out, f) }, "history": func(out *bytes.Buffer) error { return page.WriteHistory(out, h) },
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil || out.Len() > 100_000 {
			t.Errorf("%s: %v, it has %d bytes, and may have 100,000", name, err, out.Len())
		}
	}
}

// TestAPicturePlacesWhatHappened on its axis, and has all of it in a table too.
func TestAPicturePlacesWhatHappened(t *testing.T) {
	t.Parallel()
	from := noon.Add(-time.Hour)
	d := page.Timeline{Name: "x", Title: "x", From: from, To: noon, Lanes: []page.Lane{{
		Name:  "training",
		Spans: []page.Span{{from.Add(-time.Hour), from.Add(30 * time.Minute), page.Trains, "trains"}, {from.Add(30 * time.Minute), time.Time{}, page.Away, "stands still"}, {from.Add(-2 * time.Hour), from.Add(-time.Hour), page.Away, "long ago"}},
		Marks: []page.Mark{{noon.Add(time.Minute), page.Notice, "later"}, {from, page.Trouble, "lost"}},
	}}}.Draw()
	row := d.Rows[0]
	if len(row.Spans) != 2 || row.Spans[0].X+row.Spans[0].W != row.Spans[1].X || row.Spans[0].W != row.Spans[1].W {
		t.Errorf("spans %+v", row.Spans)
	}
	if len(row.Marks) != 1 || row.Marks[0].X != row.Spans[0].X || len(d.Facts) != 1 || len(d.Facts[0].Times) != 2 || len(d.Legend) != 3 || len(d.Ticks) != 7 {
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

// TestAnOpenIncidentSaysWhatIsDoneNow, until when, and what follows then.
func TestAnOpenIncidentSaysWhatIsDoneNow(t *testing.T) {
	t.Parallel()
	in := view.Incident{
		ID: "llama-8b-20261121-1", Opened: noon.Add(-time.Hour), Phase: view.Healing, Since: noon.Add(-time.Hour), Deadline: noon.Add(3 * time.Hour), Down: noon.Add(-time.Hour),
		Timeline: []view.Line{{At: noon.Add(-time.Hour), Kind: view.LineDecided, Text: "wait for Google's own recovery"}},
	}
	w := view.Workload{ID: "demo/llama-8b", Incident: &in, AtDeadline: &view.Plan{Outcome: view.Escalated, Reason: "it is REPAIRING"}}
	var out bytes.Buffer
	if err := page.WriteIncident(&out, page.Incident{Of: w, In: in, Frame: page.Frame{At: noon}}); err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{"<dt>now</dt><dd>wait for Google&#39;s own recovery, until 15:00</dd>", "<dt>at its deadline</dt><dd>escalated: it is REPAIRING</dd>"} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("it does not say %q:\n%s", says, out.String())
		}
	}
}

// TestWhatIsLeftToItsOwnerTrainsNoMore: the fleet says since when it is left, and the picture ends there.
func TestWhatIsLeftToItsOwnerTrainsNoMore(t *testing.T) {
	t.Parallel()
	w := view.Workload{ID: "demo/resnet", Project: "demo", Name: "resnet", Seen: noon.Add(-3 * time.Hour), Slices: []view.Slice{{Name: "resnet", Since: noon.Add(-time.Hour), Released: true}}}.Judged("")
	var out bytes.Buffer
	f := page.Fleet{Frame: page.Frame{At: noon}, Workloads: []view.Workload{w}, Sights: []view.Sight{{Project: "demo", Ticked: noon}}}
	if err := page.WriteFleet(&out, f); err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{"<td>1 h 0 m</td>", "nothing: it is left to its owner", `class="fill trains" d="M851.9 8h63v18`} { // two hours of three: a day and an hour take 788
		if !strings.Contains(out.String(), says) {
			t.Errorf("it does not say %q:\n%s", says, out.String())
		}
	}
	if strings.Contains(out.String(), "nobody knows") {
		t.Error("what is left to its owner is nobody's to know")
	}
}
