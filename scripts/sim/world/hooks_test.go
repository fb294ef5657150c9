package world

import (
	"context"
	"net/http"
	"testing"

	"pitstop.internal/events"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/view"
)

// TestHooksJoin: two may stand before the same service, the first one nearer to the caller, and what only one of them has stays.
func TestHooksJoin(t *testing.T) {
	asked := ""
	opens := func(name string) func(string, ledger.Opener) ledger.Opener {
		return func(_ string, next ledger.Opener) ledger.Opener {
			return func(ctx context.Context, collection string) (ledger.Collection, error) {
				asked += name + " "
				return next(ctx, collection)
			}
		}
	}
	calls := func(name string) func(string, http.RoundTripper) http.RoundTripper {
		return func(_ string, next http.RoundTripper) http.RoundTripper {
			return RoundTripper(func(r *http.Request) (*http.Response, error) {
				asked += name + " "
				return next.RoundTrip(r)
			})
		}
	}
	h := Hooks{Ledger: opens("first"), Kubernetes: calls("first"), Called: func(Call) { asked += "called " }}
	h.Join(Hooks{Ledger: opens("second"), Kubernetes: calls("second"), Sent: func(events.Envelope, string) { asked += "sent " }})
	if _, err := h.Ledger("ledger", func(context.Context, string) (ledger.Collection, error) { return nil, nil })(t.Context(), ledger.Workloads); err != nil {
		t.Fatal(err)
	}
	last := RoundTripper(func(*http.Request) (*http.Response, error) { return nil, http.ErrServerClosed })
	if _, err := h.Kubernetes("here", last).RoundTrip(nil); err == nil { //nolint:bodyclose // there is no answer
		t.Error("the service was not asked")
	}
	h.Called(Call{})
	h.Sent(events.Envelope{}, "")
	if want := "first second first second called sent "; asked != want {
		t.Errorf("asked were %q, want %q", asked, want)
	}
}

// TestNoHookSilencesAnother: a judge that no longer hears would find nothing wrong.
func TestNoHookSilencesAnother(t *testing.T) {
	h := Hooks{Saved: func(ledger.Step, view.Workload, view.Workload) {}}
	defer func() {
		if recover() == nil {
			t.Error("the second hook took the place of the first")
		}
	}()
	h.Join(Hooks{Saved: func(ledger.Step, view.Workload, view.Workload) {}})
}
