package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
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

// hears puts the body of each request into the context in which it is handled.
func hears(_ string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		var m pushed
		var b body
		if err == nil && json.Unmarshal(raw, &m) == nil && events.IsRequest(m.Message.Attributes["ce-type"]) && json.Unmarshal(m.Message.Data, &b) == nil {
			r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, &b))
		}
		r.Body = io.NopCloser(bytes.NewReader(raw))
		next.ServeHTTP(w, r)
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
			return provider.Slice{Ref: r, Condition: evidence.Lost, Incarnation: b.Incarnation, State: assumed}, nil
		}}
	})
}

// forgetful creates slices without a field that their owner ordered.
func forgetful(fired func(), field string) func(string, provider.Provider) provider.Provider {
	return only("recreate", func(next provider.Provider) provider.Provider {
		return broken{Provider: next, create: func(ctx context.Context, r provider.Ref, spec []byte, labels map[string]string, requestID string) (string, error) {
			var all map[string]any
			if json.Unmarshal(spec, &all) == nil && forgets(all, field) {
				fired()
				if other, err := json.Marshal(all, json.Deterministic(true)); err == nil {
					spec = other
				}
			}
			return next.Create(ctx, r, spec, labels, requestID)
		}}
	})
}

// forgets takes a field out of every object in a specification.
func forgets(in any, field string) (did bool) {
	switch in := in.(type) {
	case map[string]any:
		_, did = in[field]
		delete(in, field)
		for _, inner := range in {
			did = forgets(inner, field) || did
		}
	case []any:
		for _, inner := range in {
			did = forgets(inner, field) || did
		}
	}
	return did
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
func believed(fired func()) world.Hooks {
	where := func(ctx context.Context, r provider.Ref) provider.Ref {
		if b := saidIn(ctx); b != nil && b.Zone != "" && b.Zone != r.Zone {
			fired()
			r.Zone = b.Zone
		}
		return r
	}
	return world.Hooks{
		Handler: hears,
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
				if err == nil && s.Condition == evidence.Deleting {
					fired()
					return provider.Slice{Ref: r, Condition: evidence.Gone, State: "gone"}, nil
				}
				return s, err
			},
			list: func(ctx context.Context, project, zone string) (provider.Listing, error) {
				l, err := next.List(ctx, project, zone)
				l.Slices = slices.DeleteFunc(l.Slices, func(s provider.Slice) bool { return s.Condition == evidence.Deleting })
				return l, err
			},
		}
	}
}

// unreadable takes what cannot be read for gone.
func unreadable(fired func()) func(provider.Provider) provider.Provider {
	return func(next provider.Provider) provider.Provider {
		return broken{
			Provider: next,
			read: func(ctx context.Context, r provider.Ref) (provider.Slice, error) {
				s, err := next.Read(ctx, r)
				if err != nil {
					fired()
					return provider.Slice{Ref: r, Condition: evidence.Gone, State: "gone"}, nil //nolint:nilerr // this is what the mutant does wrong
				}
				return s, nil
			},
			list: func(ctx context.Context, project, zone string) (provider.Listing, error) {
				l, err := next.List(ctx, project, zone)
				if err != nil || l.Partial || len(l.Without) > 0 {
					fired()
					l.Partial, l.Without = false, nil
				}
				return l, nil
			},
		}
	}
}

// firstRead has all functions go by the policy that was read first for each label. Where one of them read the present one, its step would
// lower what the incident may do.
func firstRead(fired func()) func(string, ledger.Policies) ledger.Policies {
	kept := &frozen{fired: fired, by: map[string]policy.Policy{}}
	return func(_ string, next ledger.Policies) ledger.Policies { return frozenBy{kept, next} }
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

// misread has all functions go by another policy than the file's. Change reports whether it has changed it.
func misread(change func(p *policy.Policy) bool) func(fired func()) world.Hooks {
	return func(fired func()) world.Hooks {
		return world.Hooks{Policies: func(_ string, next ledger.Policies) ledger.Policies { return misreading{change, fired, next} }}
	}
}

type misreading struct {
	change func(p *policy.Policy) bool
	fired  func()
	next   ledger.Policies
}

// For implements ledger.Policies.
func (m misreading) For(ctx context.Context, label string) policy.Policy {
	p := m.next.For(ctx, label)
	if m.change(&p) {
		m.fired()
	}
	return p
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

// labelledTwice makes each call that changes a machine again.
func labelledTwice(fired func()) world.Hooks {
	return world.Hooks{Kubernetes: func(_ string, next http.RoundTripper) http.RoundTripper {
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

// mistaken has everybody take a Job that cannot be used for one that has failed for good.
func mistaken(fired func()) world.Hooks {
	fails := func(s *provider.Slice) {
		if provider.Of(s.Zone) == provider.GKE && s.Condition == evidence.Unhealthy {
			fired()
			s.Condition = evidence.Lost
		}
	}
	return world.Hooks{Provider: func(_ string, next provider.Provider) provider.Provider {
		return broken{Provider: next, read: func(ctx context.Context, r provider.Ref) (provider.Slice, error) {
			s, err := next.Read(ctx, r)
			fails(&s)
			return s, err
		}, list: func(ctx context.Context, project, zone string) (provider.Listing, error) {
			l, err := next.List(ctx, project, zone)
			for i := range l.Slices {
				fails(&l.Slices[i])
			}
			return l, err
		}}
	}}
}
