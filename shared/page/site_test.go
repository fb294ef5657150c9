package page_test

import (
	"context"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/page"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/publish/publishtest"
	"pitstop.internal/shared/view"
)

// presets are the policies without a file.
type presets struct{}

// For implements ledger.Policies.
func (presets) For(_ context.Context, label string) policy.Policy {
	return (*policy.File)(nil).For(label, policy.Everything())
}

// trains is a workload that has trained for two days by a time.
func trains(name string, now time.Time) incident.Workload {
	w := incident.New("demo", name, "tpu")
	p, at := presets{}.For(context.Background(), "spot"), now.Add(-48*time.Hour)
	learn := func(e evidence.Evidence) { w, _, _ = incident.Advance(p, w, e, at) }
	learn(evidence.Read{
		Origin: evidence.Origin{Time: at, Rank: events.RankReading}, Slice: name, Zone: "us-west4-a", Condition: evidence.Ready, State: "READY", Directory: "gs://ckpt/" + name,
		Incarnation: events.Incarnation{Zone: "us-west4-a", ID: "7711", Created: at}, Facts: evidence.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Capacity: events.Spot, Spec: "spec", Label: "spot"},
	})
	for i := range 3 {
		at = now.Add(time.Duration(5*i-20) * time.Minute)
		learn(evidence.Reported{Origin: evidence.Origin{ID: "entry", Time: at, Rank: events.RankUser}, Slice: name, Report: events.CrewReport{
			Schema: events.Schema, Zone: "us-west4-a", Node: name, Hostname: "t1v-n-1-w-0", Workers: 4, Report: events.ReportProgress, Attempt: 1, Step: int64(100 * i), CheckpointStep: int64(90 * i),
		}})
	}
	return w
}

// breaks is a workload that was lost at a time, and its incident, which a person took over.
func breaks(name string, at time.Time, number int) (incident.Workload, incident.Incident) {
	w, p := trains(name, at), presets{}.For(context.Background(), "spot")
	slice := w.Slices[0]
	w, _, _ = incident.Advance(p, w, evidence.Read{
		Origin: evidence.Origin{Time: at, Rank: events.RankReading}, Slice: slice.Name, Zone: slice.Zone, Condition: evidence.Lost, State: "PREEMPTED", Incarnation: slice.Incarnation,
		Facts: evidence.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Capacity: events.Spot, Spec: "spec", Label: "spot"},
	}, at)
	w, _, _ = incident.Advance(p, w, evidence.Cancelled{Origin: evidence.Origin{Time: at.Add(time.Minute), Rank: events.RankReading}, Word: evidence.Word{By: "ada"}, Incident: w.Incident.ID}, at.Add(time.Minute))
	in := *w.Closed
	in.ID = fmt.Sprintf("%s-%s-%d", w.Name, at.Format("20060102"), number)
	return w, in
}

// counting counts the documents that are read.
type counting struct {
	ledger.Collection
	read *atomic.Int64
}

func (c counting) Get(ctx context.Context, key string) (ledger.Record, error) {
	c.read.Add(1)
	return c.Collection.Get(ctx, key)
}

func (c counting) Query(ctx context.Context, q ledger.Query) ([]ledger.Record, error) {
	found, err := c.Collection.Query(ctx, q)
	c.read.Add(int64(len(found)))
	return found, err
}

// large is a site whose ledger has so many workloads, and so many closed incidents. It counts the documents that it reads.
func large(t testing.TB, open ledger.Opener, workloads, incidents int) (http.Handler, *atomic.Int64) {
	t.Helper()
	read := new(atomic.Int64)
	l := ledger.New(func(ctx context.Context, name string) (ledger.Collection, error) {
		c, err := open(ctx, name)
		return counting{c, read}, err
	})
	ctx := t.Context()
	name := func(i int) string { return fmt.Sprintf("w%04d", i%workloads) }
	for i := range workloads {
		if _, err := l.Save(ctx, trains(name(i), noon), ledger.Revision{}); err != nil {
			t.Fatal(err)
		}
	}
	every := 390 * 24 * time.Hour / time.Duration(incidents)
	for i := range incidents {
		w, in := breaks(name(i), noon.Add(-time.Duration(i+1)*every), i)
		if err := l.SaveClosed(ctx, w, in); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.SavePulse(ctx, "demo", ledger.Pulse{Ticked: noon.Add(-time.Minute)}); err != nil {
		t.Fatal(err)
	}
	return page.Site{
		Ledger: l, Now: func() time.Time { return noon }, Log: slog.New(slog.DiscardHandler), Policies: func(context.Context) (ledger.Policies, error) { return presets{}, nil },
	}.Handler(), read
}

// get is a page that has to be there.
func get(t testing.TB, h http.Handler, address string) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, address, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d, %s", address, w.Code, w.Body)
	}
	return w.Body.String()
}

var next = regexp.MustCompile(`<p><a href="([^"]*)">(?:Older ones|The next workloads)`)

// walk follows a page to the last one, and returns the first links of all rows.
func walk(t *testing.T, h http.Handler, address string) (pages int, rows []string) {
	t.Helper()
	row := regexp.MustCompile(`<tr><th scope="row"><a href="([^"]*)"`)
	for pages = 1; ; pages++ {
		body := get(t, h, address)
		for _, m := range row.FindAllStringSubmatch(body, -1) {
			rows = append(rows, m[1])
		}
		m := next.FindStringSubmatch(body)
		if m == nil || pages > 20 {
			return pages, rows
		}
		address = html.UnescapeString(m[1])
	}
}

// TestPagesLeadToAllThereIs, each thing once, and a filter finds what it asks for.
func TestPagesLeadToAllThereIs(t *testing.T) {
	t.Parallel()
	h, _ := large(t, ledgertest.NewStrictStore().Open, 230, 450)
	for address, c := range map[string]struct{ pages, rows int }{
		"/": {3, 230}, "/incidents": {5, 450}, "/incidents?workload=w0007": {1, 2}, "/incidents?workload=demo%2Fw0007": {1, 2}, "/incidents?cause=preemption": {5, 450},
		"/incidents?cause=crash": {1, 0}, "/incidents?zone=us-west4-a&end=released": {5, 450}, "/incidents?zone=elsewhere": {1, 0}, "/incidents?from=2026-11-01&until=2026-11-10": {1, 11},
	} {
		pages, rows := walk(t, h, address)
		distinct := len(slices.Compact(slices.Sorted(slices.Values(rows))))
		if pages != c.pages || len(rows) != c.rows || distinct != c.rows {
			t.Errorf("%s: %d pages, %d rows, %d of them distinct; want %d and %d", address, pages, len(rows), distinct, c.pages, c.rows)
		}
	}
	if body := get(t, h, "/losses"); !strings.Contains(body, "450 closed incidents") || !strings.Contains(body, "<td data-name=\"zone\">us-west4-a</td>") {
		t.Error("the losses are not added up")
	}
}

// TestADocumentThatCannotBeReadHidesNoOther: a page shows the rest, and names it.
func TestADocumentThatCannotBeReadHidesNoOther(t *testing.T) {
	t.Parallel()
	store := ledgertest.NewStrictStore()
	h, _ := large(t, store.Open, 3, 3)
	for collection, r := range map[string]*ledger.Record{
		ledger.Workloads: {ID: "demo%2Ftorn", Schema: incident.Schema, Body: "{", Rank: "0"},
		ledger.Archive:   {ID: "demo%2Fw0000%2Ftorn-1", Schema: incident.Schema, Body: "{}", Row: "{", Rank: view.RankTime(noon.Add(-time.Minute))},
	} {
		c, err := store.Open(t.Context(), collection)
		if err == nil {
			err = c.Put(t.Context(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for address, says := range map[string][]string{
		"/":                              {"torn", "demo/w0000", "demo/w0002"},
		"/incidents":                     {"torn", "w0000-", "w0002-"},
		"/incidents?workload=demo/w0000": {"torn-1", "w0000-"},
		"/losses":                        {"torn-1", "3 closed incidents"},
		"/time?from=2025-01-01":          {"torn-1", "demo/torn", "3 workloads", "demo/w0001"},
	} {
		body := get(t, h, address)
		for _, want := range append(says, "cannot be read") {
			if !strings.Contains(body, want) {
				t.Errorf("%s does not say %q:\n%s", address, want, body)
			}
		}
	}
}

// TestAPageReadsNoMoreThanItShows, however much there is.
func TestAPageReadsNoMoreThanItShows(t *testing.T) {
	t.Parallel()
	h, read := large(t, ledgertest.NewStrictStore().Open, 230, 450)
	for address, most := range map[string]int64{
		"/": 120, "/incidents": 120, "/incidents?workload=w0007": 20, "/time?workload=w0007": 10, "/incident/demo/w0000/" + url.PathEscape("w0000-20261120-0"): 3,
	} {
		read.Store(0)
		get(t, h, address)
		if n := read.Load(); n > most {
			t.Errorf("%s reads %d documents, and may read %d", address, n, most)
		}
	}
}

// BenchmarkPage asks a deployment of 1,000 workloads and 10,000 closed incidents for its pages.
func BenchmarkPage(b *testing.B) {
	for name, open := range map[string]func(testing.TB) ledger.Opener{
		"memory": func(testing.TB) ledger.Opener { return ledgertest.NewStore().Open },
		"firestore": func(b testing.TB) ledger.Opener {
			b.Helper()
			b.Setenv("FIRESTORE_EMULATOR_HOST", publishtest.Emulator(b, publishtest.Firestore))
			return ledger.Firestore("page-benchmark", ledger.Database)
		},
	} {
		b.Run("on="+name, func(b *testing.B) {
			h, read := large(b, open(b), 1000, 10_000)
			for address, what := range map[string]string{"/": "fleet", "/incidents": "incidents", "/incidents?cause=crash": "filtered", "/losses": "losses", "/time": "time"} {
				b.Run("page="+what, func(b *testing.B) {
					var took []time.Duration
					read.Store(0)
					for b.Loop() {
						began := time.Now()
						get(b, h, address)
						took = append(took, time.Since(began))
					}
					slices.Sort(took)
					b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
					b.ReportMetric(float64(read.Load())/float64(b.N), "reads")
				})
			}
		})
	}
}
