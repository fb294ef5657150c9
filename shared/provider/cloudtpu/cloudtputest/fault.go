package cloudtputest

import (
	"slices"
	"time"
)

// Fault is what goes wrong with some calls. A call meets the first fault that fits it, and of that everything that is
// set.
type Fault struct {
	// Method, Zone and Name select the calls: DeleteNode, a zone, and the ID of a node or a queued resource. An empty field
	// fits all.
	Method, Zone, Name string
	// Legacy says calls of v1 alone.
	Legacy bool
	// Times is how many calls meet it: one when zero, all when below zero.
	Times int

	// Before runs before the call is looked at, for what another caller does in between.
	Before func()

	// Code and Message refuse the call, which then has no effect. HTTP answers with another status than belongs to the
	// code; without a code it answers with a page that is not the API's.
	Code    int
	Message string
	HTTP    int
	// LoseRequest loses the call before it takes effect, LoseAnswer loses the answer after that. To the caller they look
	// alike.
	LoseRequest, LoseAnswer bool

	// Slow is how much longer the operation takes. LateCode and LateMessage are how it fails in the end.
	Slow        time.Duration
	LateCode    int
	LateMessage string

	// Unreachable makes a listing empty and says so.
	Unreachable bool
}

// HasMethod reports whether the API has a method of that name.
func HasMethod(name string) bool { return methodNamed[name] != nil }

// Inject adds a fault after the existing ones. The returned function removes it again.
func (a *API) Inject(f Fault) (withdraw func()) {
	if f.Times == 0 {
		f.Times = 1
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faults = append(a.faults, &f)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.faults = slices.DeleteFunc(a.faults, func(o *Fault) bool { return o == &f })
	}
}

// fault finds the fault that a call meets, or nil.
func (a *API) fault(m *method, c *request) *Fault {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, f := range a.faults {
		if f.Method != "" && f.Method != m.name || f.Zone != "" && f.Zone != c.zone || f.Name != "" && f.Name != c.target() || f.Legacy && !c.legacy() {
			continue
		}
		met := *f
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				a.faults = slices.Delete(a.faults, i, i+1)
			}
		}
		return &met
	}
	return nil
}
