package main

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/functions/patrol"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/cloudlog"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/gke"
)

// pushed is the message of a push request.
type pushed struct {
	Message struct {
		Data       []byte            `json:"data"`
		Attributes map[string]string `json:"attributes,omitempty"`
	} `json:"message"`
}

// body is what a request says, whatever of it is to be obeyed.
type body struct {
	events.Request
	Zone      string `json:"zone"`
	Directory string `json:"directory"`
}

type bodyKey struct{}

// saidIn is the body of the request that is handled in a context; nil where none is.
func saidIn(ctx context.Context) *body {
	b, _ := ctx.Value(bodyKey{}).(*body)
	return b
}

// hears puts the body of each request into the context in which it is handled, and lets it be rewritten on its way.
func hears(rewrite func(ctx context.Context, b *body) bool) func(string, http.Handler) http.Handler {
	return func(_ string, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			raw, err := io.ReadAll(r.Body)
			var m pushed
			var b body
			if err == nil && json.Unmarshal(raw, &m) == nil && events.IsRequest(m.Message.Attributes["ce-type"]) && json.Unmarshal(m.Message.Data, &b) == nil {
				said := b // as it was sent, whatever becomes of it
				r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, &said))
				if rewrite != nil && rewrite(r.Context(), &b) {
					raw = redirected(raw, b.Pointer())
				}
			}
			r.Body = io.NopCloser(bytes.NewReader(raw))
			next.ServeHTTP(w, r)
		})
	}
}

// redirected has a pushed request point to another effect.
func redirected(raw []byte, to events.Pointer) []byte {
	edit := func(raw []byte, key string, change func(any) any) []byte {
		var all map[string]any
		if json.Unmarshal(raw, &all) != nil {
			return raw
		}
		all[key] = change(all[key])
		out, err := json.Marshal(all, json.Deterministic(true))
		if err != nil {
			return raw
		}
		return out
	}
	var m pushed
	if json.Unmarshal(raw, &m) != nil {
		return raw
	}
	data := edit(m.Message.Data, "epoch", func(any) any { return to.Epoch })
	return edit(raw, "message", func(message any) any {
		fields, ok := message.(map[string]any)
		if !ok {
			return message
		}
		fields = maps.Clone(fields)
		fields["data"] = data // bytes are written in base64
		return fields
	})
}

// acknowledges answers a push with success where its handler wants it again.
func acknowledges(fired func()) func(string, http.Handler) http.Handler {
	return func(_ string, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(&acknowledging{w, fired}, r)
		})
	}
}

type acknowledging struct {
	http.ResponseWriter
	fired func()
}

func (a *acknowledging) WriteHeader(code int) {
	if code >= http.StatusInternalServerError || code == http.StatusTooManyRequests {
		a.fired()
		code = http.StatusOK
	}
	a.ResponseWriter.WriteHeader(code)
}

// broken is a provider of which some methods are replaced.
type broken struct {
	provider.Provider
	read   func(ctx context.Context, r provider.Ref) (provider.Slice, error)
	list   func(ctx context.Context, project, zone string) (provider.Listing, error)
	create func(ctx context.Context, r provider.Ref, spec []byte, labels map[string]string, requestID string) (string, error)
	remove func(ctx context.Context, r provider.Ref, requestID string) (string, error)
}

// Read and the methods below implement provider.Provider.
func (p broken) Read(ctx context.Context, r provider.Ref) (provider.Slice, error) {
	if p.read != nil {
		return p.read(ctx, r)
	}
	return p.Provider.Read(ctx, r)
}

func (p broken) List(ctx context.Context, project, zone string) (provider.Listing, error) {
	if p.list != nil {
		return p.list(ctx, project, zone)
	}
	return p.Provider.List(ctx, project, zone)
}

func (p broken) Create(ctx context.Context, r provider.Ref, spec []byte, labels map[string]string, requestID string) (string, error) {
	if p.create != nil {
		return p.create(ctx, r, spec, labels, requestID)
	}
	return p.Provider.Create(ctx, r, spec, labels, requestID)
}

func (p broken) Delete(ctx context.Context, r provider.Ref, requestID string) (string, error) {
	if p.remove != nil {
		return p.remove(ctx, r, requestID)
	}
	return p.Provider.Delete(ctx, r, requestID)
}

// only stands between one function and the provider.
func only(function string, between func(next provider.Provider) provider.Provider) func(string, provider.Provider) provider.Provider {
	return func(name string, next provider.Provider) provider.Provider {
		if name != function {
			return next
		}
		return between(next)
	}
}

// assumed is the state of a slice that nobody has read.
const assumed = "ASSUMED LOST"

// unread makes recreate take the slice to delete for lost, without a look.
func unread(fired func()) func(string, provider.Provider) provider.Provider {
	return only("recreate", func(next provider.Provider) provider.Provider {
		return broken{Provider: next, read: func(ctx context.Context, r provider.Ref) (provider.Slice, error) {
			b := saidIn(ctx)
			if b == nil || b.Action != events.ActionDelete || b.Slice != r.Name {
				return next.Read(ctx, r)
			}
			fired()
			return provider.Slice{Ref: r, Condition: incident.Lost, Incarnation: b.Incarnation, State: assumed}, nil
		}}
	})
}

// unassumed hides unread facts from the decision.
func unassumed(_ incident.Workload, e incident.Evidence, _ time.Time) incident.Evidence {
	if r, ok := e.(incident.Read); ok && r.State == assumed {
		return nil
	}
	return e
}

// forgetful creates slices without something that their owner ordered.
func forgetful(fired func(), forget func(node map[string]any) bool) func(string, provider.Provider) provider.Provider {
	return only("recreate", func(next provider.Provider) provider.Provider {
		return broken{Provider: next, create: func(ctx context.Context, r provider.Ref, spec []byte, labels map[string]string, requestID string) (string, error) {
			var all map[string]any
			if json.Unmarshal(spec, &all) == nil && forgets(all, forget) {
				fired()
				if other, err := json.Marshal(all, json.Deterministic(true)); err == nil {
					spec = other
				}
			}
			return next.Create(ctx, r, spec, labels, requestID)
		}}
	})
}

// forgets takes something out of every node of a specification.
func forgets(in any, forget func(node map[string]any) bool) (did bool) {
	switch in := in.(type) {
	case map[string]any:
		for _, inner := range in {
			if node, ok := inner.(map[string]any); ok {
				did = forget(node) || did
			}
			did = forgets(inner, forget) || did
		}
	case []any:
		for _, inner := range in {
			did = forgets(inner, forget) || did
		}
	}
	return did
}

// without forgets one field.
func without(field string) func(map[string]any) bool {
	return func(node map[string]any) bool {
		_, there := node[field]
		delete(node, field)
		return there
	}
}

// believing writes where the body of a request says.
type believing struct {
	world.Buckets
	fired func()
}

// Put implements checkpoint.Store.
func (s believing) Put(ctx context.Context, uri string, content []byte, generation int64) (int64, error) {
	dir, name := uri[:strings.LastIndexByte(uri, '/')], uri[strings.LastIndexByte(uri, '/'):]
	if b := saidIn(ctx); b != nil && b.Directory != "" && b.Directory != dir {
		s.fired()
		return s.Buckets.Put(ctx, b.Directory+name, content, 0)
	}
	return s.Buckets.Put(ctx, uri, content, generation)
}

// believed has recreate and the buckets do what the body of a request says.
func believed(fired func()) world.Seams {
	where := func(ctx context.Context, r provider.Ref) provider.Ref {
		if b := saidIn(ctx); b != nil && b.Zone != "" && b.Zone != r.Zone {
			fired()
			r.Zone = b.Zone
		}
		return r
	}
	return world.Seams{
		Handler: hears(nil),
		Store:   func(next world.Buckets) world.Buckets { return believing{next, fired} },
		Provider: only("recreate", func(next provider.Provider) provider.Provider {
			return broken{
				Provider: next,
				create: func(ctx context.Context, r provider.Ref, spec []byte, labels map[string]string, requestID string) (string, error) {
					return next.Create(ctx, where(ctx, r), spec, labels, requestID)
				},
				remove: func(ctx context.Context, r provider.Ref, requestID string) (string, error) {
					return next.Delete(ctx, where(ctx, r), requestID)
				},
			}
		}),
	}
}

// unfenced accepts a request of any epoch as the present one, and obeys its body.
func unfenced(fired func()) world.Seams {
	s := believed(func() {})
	var kept *ledger.Ledger
	var once sync.Once
	s.Ledger = func(_ string, next ledger.Opener) ledger.Opener {
		once.Do(func() { kept = ledger.New(next) })
		return next
	}
	s.Handler = hears(func(_ context.Context, b *body) bool {
		w, _, err := kept.Workload(context.Background(), b.Workload)
		if err != nil || w.Incident == nil || w.Incident.ID != b.Incident || w.Epoch == b.Epoch {
			return false
		}
		for _, t := range w.Effects {
			if t.Action == b.Action && t.Slice == b.Slice && t.Epoch == w.Epoch {
				fired()
				b.Epoch = w.Epoch
				return true
			}
		}
		return false
	})
	return s
}

// elsewhere keeps a collection in a place of its own, which nobody else sees.
func elsewhere(collection string, fired func()) func(string, ledger.Opener) ledger.Opener {
	return func(_ string, next ledger.Opener) ledger.Opener {
		empty := ledgertest.NewStore()
		watched := (&ledgertest.Tap{Before: func(context.Context, ledgertest.Call) error {
			fired()
			return nil
		}}).On(empty.Open)
		return split(collection, next, watched)
	}
}

// unwritten drops writes to a collection.
func unwritten(collection string, fired func()) func(string, ledger.Opener) ledger.Opener {
	return func(_ string, next ledger.Opener) ledger.Opener {
		tap := &ledgertest.Tap{Before: func(_ context.Context, c ledgertest.Call) error {
			if !c.Write {
				return nil
			}
			fired()
			return ledgertest.ErrUnwritten
		}}
		return split(collection, next, tap.On(next))
	}
}

// goneBefore takes a slice for gone while it is still being deleted.
func goneBefore(fired func()) func(string, provider.Provider) provider.Provider {
	return func(_ string, next provider.Provider) provider.Provider {
		return broken{
			Provider: next,
			read: func(ctx context.Context, r provider.Ref) (provider.Slice, error) {
				s, err := next.Read(ctx, r)
				if err == nil && s.Condition == incident.Deleting {
					fired()
					return provider.Slice{Ref: r, Condition: incident.Gone, State: "gone"}, nil
				}
				return s, err
			},
			list: func(ctx context.Context, project, zone string) (provider.Listing, error) {
				l, err := next.List(ctx, project, zone)
				l.Slices = slices.DeleteFunc(l.Slices, func(s provider.Slice) bool { return s.Condition == incident.Deleting })
				return l, err
			},
		}
	}
}

// asksNobody has patrol ask an audit log that names nobody.
func asksNobody(fired func()) func(patrol.AuditLog) patrol.AuditLog {
	return func(patrol.AuditLog) patrol.AuditLog { return nobody{fired} }
}

// whole takes each listing for whole.
func whole(fired func()) func(provider.Provider) provider.Provider {
	return func(next provider.Provider) provider.Provider {
		return broken{Provider: next, list: func(ctx context.Context, project, zone string) (provider.Listing, error) {
			l, err := next.List(ctx, project, zone)
			if l.Partial || len(l.Without) > 0 {
				fired()
				l.Partial, l.Without = false, nil
			}
			return l, err
		}}
	}
}

// nobody is an audit log that names nobody.
type nobody struct{ fired func() }

// Entries implements patrol.AuditLog.
func (n nobody) Entries(context.Context, cloudlog.Query) ([][]byte, bool, error) {
	n.fired()
	return nil, true, nil
}

// firstRead has the functions that act go by the policy that they read first for each label.
func firstRead(fired func()) func(string, ledger.Policies) ledger.Policies {
	kept := &frozen{fired: fired, by: map[string]policy.Policy{}}
	return func(function string, next ledger.Policies) ledger.Policies {
		switch function {
		case "checkpoint", "recovery", "recreate":
			return frozenBy{kept, next}
		}
		return next
	}
}

type frozen struct {
	fired func()
	mu    sync.Mutex
	by    map[string]policy.Policy
}

type frozenBy struct {
	*frozen
	next ledger.Policies
}

// For implements ledger.Policies.
func (f frozenBy) For(ctx context.Context, label string) policy.Policy {
	p := f.next.For(ctx, label)
	f.mu.Lock()
	defer f.mu.Unlock()
	old, ok := f.by[label]
	switch {
	case ok && old.Hash != p.Hash:
		f.fired()
		return old
	case !ok && p.Unreadable == "":
		f.by[label] = p
	}
	return p
}

// remembering answers a single reading with what a listing showed last.
func remembering(fired func()) func(string, provider.Provider) provider.Provider {
	var mu sync.Mutex
	listed := map[string]provider.Slice{}
	return func(function string, next provider.Provider) provider.Provider {
		if function != "patrol" && function != "logevent" {
			return next
		}
		return broken{
			Provider: next,
			list: func(ctx context.Context, project, zone string) (provider.Listing, error) {
				l, err := next.List(ctx, project, zone)
				mu.Lock()
				defer mu.Unlock()
				for _, s := range l.Slices {
					listed[s.Zone+"/"+s.Name] = s
				}
				return l, err
			},
			read: func(ctx context.Context, r provider.Ref) (provider.Slice, error) {
				mu.Lock()
				last, ok := listed[r.Zone+"/"+r.Name]
				mu.Unlock()
				s, err := next.Read(ctx, r)
				if err == nil && ok && s.Condition == incident.Gone && last.Condition == incident.Ready {
					fired()
					return last, nil
				}
				return s, err
			},
		}
	}
}

// edits changes the workload in a document of the ledger that has an open incident; change reports whether it did.
func edits(c ledgertest.Call, change func(w *incident.Workload) bool) {
	var w incident.Workload
	if c.Query || json.Unmarshal([]byte(c.Body()), &w) != nil || w.Incident == nil || !change(&w) {
		return
	}
	if raw, err := json.Marshal(w, json.Deterministic(true)); err == nil {
		c.Doc.Body, c.Doc.Decoded = string(raw), nil
	}
}

// recreatesWhatIsCleared shows recreate an incident that cleans up as one that creates still.
func recreatesWhatIsCleared(fired func()) func(string, ledger.Opener) ledger.Opener {
	follows := map[string]incident.Outcome{}
	return shownToRecreate(func(w *incident.Workload) bool {
		in := w.Incident
		if in.Clearing == "" || !slices.ContainsFunc(w.Effects, func(t incident.Effect) bool { return t.Action == events.ActionCreate }) {
			return false
		}
		fired()
		follows[in.ID], in.Clearing = in.Clearing, ""
		return true
	}, func(w *incident.Workload) bool {
		in := w.Incident
		was := in.Clearing == "" && follows[in.ID] != ""
		if was {
			in.Clearing = follows[in.ID]
		}
		return was
	})
}

// claimsNothing shows recreate each request as one that nobody has begun.
func claimsNothing(fired func()) func(string, ledger.Opener) ledger.Opener {
	return shownToRecreate(func(w *incident.Workload) (changed bool) {
		for i := range w.Effects {
			if t := &w.Effects[i]; !t.Begun.IsZero() && t.Answered.IsZero() {
				fired()
				t.Begun, t.RequestID, changed = time.Time{}, "", true
			}
		}
		return changed
	}, func(*incident.Workload) bool { return false })
}

// shownToRecreate changes the workloads with open incidents that recreate reads, and those that it writes.
func shownToRecreate(read, written func(w *incident.Workload) bool) func(string, ledger.Opener) ledger.Opener {
	return func(function string, next ledger.Opener) ledger.Opener {
		if function != "recreate" {
			return next
		}
		tap := &ledgertest.Tap{
			Before: func(_ context.Context, c ledgertest.Call) error {
				if c.Write {
					edits(c, written)
				}
				return nil
			},
			After: func(_ context.Context, c ledgertest.Call, err error) error {
				if err == nil && !c.Write {
					edits(c, read)
				}
				return err
			},
		}
		return split(ledger.Workloads, next, tap.On(next))
	}
}

// split opens one collection by another way than the others.
func split(collection string, others, this ledger.Opener) ledger.Opener {
	return func(ctx context.Context, name string) (ledger.Collection, error) {
		if name == collection {
			return this(ctx, name)
		}
		return others(ctx, name)
	}
}

// misread changes what patrol reads of Jobs; change reports whether it did.
func misread(change func(s *provider.Slice) bool) func(fired func()) world.Seams {
	return func(fired func()) world.Seams {
		return world.Seams{Provider: only("patrol", func(next provider.Provider) provider.Provider {
			return broken{Provider: next, list: func(ctx context.Context, project, zone string) (provider.Listing, error) {
				l, err := next.List(ctx, project, zone)
				for i := range l.Slices {
					if provider.Of(zone) == provider.GKE && change(&l.Slices[i]) {
						fired()
					}
				}
				return l, err
			}}
		})}
	}
}

// impatient has recreate, and the decision, take a Job that its controller begins again for one that has failed for good. The document keeps
// what is so.
func impatient(fired func()) world.Seams {
	return world.Seams{
		Provider: only("recreate", func(next provider.Provider) provider.Provider {
			return broken{Provider: next, read: func(ctx context.Context, r provider.Ref) (provider.Slice, error) {
				s, err := next.Read(ctx, r)
				if s.Condition == incident.Unhealthy && s.Healing == incident.HealsAlways {
					fired()
					s.Condition, s.Healing, s.State = incident.Lost, incident.HealsNever, assumed
				}
				return s, err
			}}
		}),
		Decide: func(p policy.Policy, w incident.Workload, e incident.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
			r, reads := e.(incident.Read)
			switch {
			case reads && r.State == assumed:
				return w, nil, false
			case !reads || r.Condition != incident.Unhealthy || r.Facts.Healing != incident.HealsAlways:
				return incident.Advance(p, w, e, now)
			}
			r.Condition, r.Facts.Healing = incident.Lost, incident.HealsNever
			next, send, changed := incident.Advance(p, w, r, now)
			next = own(next)
			for i := range next.Slices {
				if s := &next.Slices[i]; s.Name == r.Slice && s.Condition == incident.Lost && changed {
					s.Condition, s.Healing = incident.Unhealthy, incident.HealsAlways
				}
			}
			return next, send, changed
		},
	}
}

// labelledTwice makes each call that changes a machine again.
func labelledTwice(fired func()) world.Seams {
	return world.Seams{Kubernetes: func(next http.RoundTripper) http.RoundTripper {
		return world.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/nodes/") {
				return next.RoundTrip(r)
			}
			sent, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			r = r.Clone(r.Context())
			r.Body = io.NopCloser(bytes.NewReader(sent))
			res, err := next.RoundTrip(r)
			if err != nil || res.StatusCode >= http.StatusMultipleChoices {
				return res, err
			}
			fired()
			r = r.Clone(r.Context())
			r.Body = io.NopCloser(bytes.NewReader(sent))
			if again, err := next.RoundTrip(r); err == nil {
				_ = again.Body.Close() //nolint:errcheck // the first answer counts
			}
			return res, nil
		})
	}}
}

// emptied has a list of a cluster that fails be one without slices.
func emptied(fired func()) func(provider.Provider) provider.Provider {
	return func(next provider.Provider) provider.Provider {
		return broken{Provider: next, list: func(ctx context.Context, project, zone string) (provider.Listing, error) {
			l, err := next.List(ctx, project, zone)
			if err != nil && provider.Of(zone) == provider.GKE {
				fired()
				return provider.Listing{}, nil
			}
			return l, err
		}}
	}
}

// unseen has everybody take a Job for gone while a Pod of it is left.
func unseen(fired func()) world.Seams {
	gone := func(s *provider.Slice) {
		if s.Remains {
			fired()
			s.Remains, s.Condition = false, incident.Gone
		}
	}
	return world.Seams{Provider: func(_ string, next provider.Provider) provider.Provider {
		return broken{Provider: next, read: func(ctx context.Context, r provider.Ref) (provider.Slice, error) {
			s, err := next.Read(ctx, r)
			gone(&s)
			return s, err
		}, list: func(ctx context.Context, project, zone string) (provider.Listing, error) {
			l, err := next.List(ctx, project, zone)
			for i := range l.Slices {
				gone(&l.Slices[i])
			}
			return l, err
		}}
	}}
}

// unmasked has patrol store whole manifests.
func unmasked(fired func()) world.Seams {
	return world.Seams{Provider: only("patrol", func(next provider.Provider) provider.Provider {
		return broken{Provider: next, list: func(ctx context.Context, project, zone string) (provider.Listing, error) {
			l, err := next.List(ctx, project, zone)
			for i := range l.Slices {
				s := &l.Slices[i]
				if provider.Of(zone) != provider.GKE || len(s.Values) == 0 {
					continue
				}
				if whole, err := (gke.Orders{}).Whole(s.Spec, s.Values); err == nil {
					fired()
					s.Spec, s.Values = whole, nil
				}
			}
			return l, err
		}}
	})}
}
