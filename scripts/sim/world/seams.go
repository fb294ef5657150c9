package world

import (
	"net/http"

	"pitstop.internal/functions/patrol"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
)

// Seams are the places at which a simulated pipeline can be broken on purpose: where evidence comes in and where effects go
// out. A hook that is nil changes nothing. The judge and the simulated cloud see what the broken pipeline really does.
type Seams struct {
	// Decide takes the place of incident.Advance. The judge makes each decision again, so Decide must not remember anything.
	Decide ledger.Decision
	// Reads leaves out what somebody has to go and read.
	Reads func(all incident.Reads) incident.Reads
	// Handler stands before a function: it changes the push request that the function is handed, or its answer.
	Handler func(function string, next http.Handler) http.Handler
	// API stands between the functions and the simulated Cloud TPU API, except for legacy nodes.
	API func(next http.RoundTripper) http.RoundTripper
	// Kubernetes stands between them and the API servers of the clusters.
	Kubernetes func(next http.RoundTripper) http.RoundTripper
	// Provider, Store, Audit, Policies and Ledger stand between a function and its services.
	Provider func(function string, next provider.Provider) provider.Provider
	Store    func(next Buckets) Buckets
	Audit    func(next patrol.AuditLog) patrol.AuditLog
	Policies func(function string, next ledger.Policies) ledger.Policies
	Ledger   func(function string, next ledger.Opener) ledger.Opener
	// Limits are those of the brake that the functions are configured with.
	Limits func(ledger.Limits) ledger.Limits
}

// Buckets is what functions read and write checkpoint directories through.
type Buckets interface {
	checkpoint.Store
	checkpoint.Locator
}

// Decision is how the pipeline decides.
func (s Seams) Decision() ledger.Decision {
	if s.Decide == nil {
		return incident.Advance
	}
	return s.Decide
}

func (s Seams) handler(function string, next http.Handler) http.Handler {
	if s.Handler == nil {
		return next
	}
	return s.Handler(function, next)
}

func (s Seams) api(next http.RoundTripper) http.RoundTripper {
	if s.API == nil {
		return next
	}
	return s.API(next)
}

func (s Seams) kubernetes(next http.RoundTripper) http.RoundTripper {
	if s.Kubernetes == nil {
		return next
	}
	return s.Kubernetes(next)
}

func (s Seams) provider(function string, next provider.Provider) provider.Provider {
	if s.Provider == nil {
		return next
	}
	return s.Provider(function, next)
}

func (s Seams) store(next Buckets) Buckets {
	if s.Store == nil {
		return next
	}
	return s.Store(next)
}

func (s Seams) audit(next patrol.AuditLog) patrol.AuditLog {
	if s.Audit == nil {
		return next
	}
	return s.Audit(next)
}

func (s Seams) policies(function string, next ledger.Policies) ledger.Policies {
	if s.Policies == nil {
		return next
	}
	return s.Policies(function, next)
}

// ledger is the ledger of a function: the shared one, unless something stands between.
func (s Seams) ledger(function string, shared *ledger.Ledger, open ledger.Opener) *ledger.Ledger {
	if s.Ledger == nil {
		return shared
	}
	return ledger.New(s.Ledger(function, open))
}

func (s Seams) limits(given ledger.Limits) ledger.Limits {
	if s.Limits == nil {
		return given
	}
	return s.Limits(given)
}
