package cloud

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/view"
)

// AdminPrefix is before the act in the path of a call that makes something happen.
const AdminPrefix = "/admin/"

// act is what such a call says. Not every act takes everything.
type act struct {
	Zone string `json:"zone"`
	// Of is a part of the zone: a capacity, an accelerator type, or both, as cloudtputest.ParsePlace reads them.
	Of string `json:"of"`
	// Node is a node; of calls that go wrong it is a queued resource too.
	Node string `json:"node"`
	// In is when it begins, For how long it lasts or how much slower a call is.
	In  span `json:"in"`
	For span `json:"for"`
	// Slices is the capacity of a zone; -1 is without limit.
	Slices *int `json:"slices"`
	// Method is the method that goes wrong: DeleteNode. Times is how often; -1 is always.
	Method string `json:"method"`
	Times  int    `json:"times"`
	// Code is the HTTP status of the answer, and Message its text.
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// span is a duration such as 90s or 2h.
type span time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 {
		return fmt.Errorf("%q is no duration such as 90s or 2h", text)
	}
	*s = span(d)
	return nil
}

// acts are what can be made to happen, by the last part of the path.
var acts = map[string]func(*Cloud, act) error{
	"preempt":   func(c *Cloud, a act) error { return c.API.Preempt(a.Zone, a.Node) },
	"terminate": func(c *Cloud, a act) error { return c.API.Terminate(a.Zone, a.Node) },
	"host-error": func(c *Cloud, a act) error {
		down := time.Duration(a.For)
		if down == 0 {
			down = -1 // for good
		}
		return c.API.HostError(a.Zone, a.Node, down)
	},
	"maintenance": func(c *Cloud, a act) error {
		return c.Maintain(a.Zone, a.Node, time.Duration(a.In), time.Duration(a.For))
	},
	"withdraw": func(c *Cloud, a act) error { return c.API.Withdraw(a.Zone, a.Node) },
	"stockout": func(c *Cloud, a act) error {
		none := 0
		a.Slices = &none
		return c.capacity(a)
	},
	"capacity": (*Cloud).capacity,
	"slow": func(c *Cloud, a act) error {
		if a.For == 0 {
			return errors.New("say with for how much longer the operation takes")
		}
		return c.fault(a, cloudtputest.Fault{Slow: time.Duration(a.For)})
	},
	"fail": func(c *Cloud, a act) error {
		code, ok := statuses[a.Code]
		if !ok {
			return fmt.Errorf("code %d is none of %v", a.Code, slices.Sorted(maps.Keys(statuses)))
		}
		if a.Message == "" {
			a.Message = http.StatusText(a.Code)
		}
		return c.fault(a, cloudtputest.Fault{Code: code, Message: a.Message, HTTP: a.Code})
	},
	"lose-answer":  func(c *Cloud, a act) error { return c.fault(a, cloudtputest.Fault{LoseAnswer: true}) },
	"lose-request": func(c *Cloud, a act) error { return c.fault(a, cloudtputest.Fault{LoseRequest: true}) },
}

// statuses are the HTTP statuses with which a call can be made to fail, and the codes of google.rpc.Status.
var statuses = map[int]int{400: 3, 401: 16, 403: 7, 404: 5, 409: 10, 429: 8, 500: 13, 503: 14, 504: 4}

// Acts are the names of what can be made to happen.
func Acts() []string { return slices.Sorted(maps.Keys(acts)) }

func (c *Cloud) capacity(a act) error {
	if !slices.Contains(c.API.Zones(), a.Zone) {
		return fmt.Errorf("there is no zone %q; the zones are %s", a.Zone, strings.Join(c.API.Zones(), ", "))
	}
	if a.Slices == nil || *a.Slices < cloudtputest.Unlimited {
		return errors.New("say with slices how many slices the zone holds; -1 is without limit")
	}
	at, err := cloudtputest.ParsePlace(a.Zone + " " + a.Of)
	if err != nil {
		return err
	}
	c.Supply(at, *a.Slices, time.Duration(a.For))
	return nil
}

// Supply gives a zone, or a place in it, room for so many slices for that long; 0 is for good.
func (c *Cloud) Supply(at view.Place, room int, lasts time.Duration) {
	c.supplying.Lock()
	defer c.supplying.Unlock()
	z, known := c.supplies[at]
	if !known {
		z = &supply{capacity: c.API.Room(at)}
		c.supplies[at] = z
	}
	z.turn++
	if lasts == 0 {
		z.capacity = room
	} else {
		turn := z.turn
		c.clock.At(c.clock.Now().Add(lasts), func() { c.resupply(at, turn) })
	}
	c.API.SetRoom(at, room)
}

// supply is the capacity that a place has for good, and the number of the latest act that changed it. An act for a while ends by itself
// only while it is the latest.
type supply struct{ capacity, turn int }

// resupply ends an act for a while.
func (c *Cloud) resupply(at view.Place, turn int) {
	c.supplying.Lock()
	defer c.supplying.Unlock()
	if z := c.supplies[at]; z.turn == turn {
		c.API.SetRoom(at, z.capacity)
	}
}

func (c *Cloud) fault(a act, f cloudtputest.Fault) error {
	if !cloudtputest.HasMethod(a.Method) && a.Method != "" {
		return fmt.Errorf("the Cloud TPU API has no method %q: name one as the audit log does, such as CreateNode", a.Method)
	}
	f.Method, f.Zone, f.Name, f.Times = a.Method, a.Zone, a.Node, a.Times
	c.API.Inject(f)
	return nil
}

// Maintain announces maintenance of a node that begins later and lasts that long, or begins it at once. 0 lasts as long as usual.
func (c *Cloud) Maintain(zone, node string, in, lasts time.Duration) error {
	if lasts == 0 {
		lasts = c.maintenanceTakes
	}
	if in == 0 {
		return c.API.Maintain(zone, node, lasts)
	}
	begins := c.clock.Now().Add(in)
	const window = 4 * time.Hour
	notice := events.Notice{Status: events.NoticePending, CanReschedule: true, WindowStart: begins, WindowEnd: begins.Add(window), LatestWindowStart: begins.Add(window)}
	life := c.API.Incarnation(zone, node)
	if err := c.API.Announce(zone, node, notice); err != nil {
		return err
	}
	c.clock.At(begins, func() {
		n := c.API.Node(zone, node)
		if n == nil || c.API.Incarnation(zone, node) != life || n.UpcomingMaintenance == nil ||
			n.UpcomingMaintenance.MaintenanceStatus != "PENDING" || n.UpcomingMaintenance.WindowStartTime != begins.UTC().Format(time.RFC3339Nano) {
			return // somebody started it early, it was withdrawn, or the node is another one
		}
		_ = c.API.Maintain(zone, node, lasts) //nolint:errcheck // the node is there
	})
	return nil
}

// serveAdmin makes something happen for a caller who has the token.
func (c *Cloud) serveAdmin(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, format string, args ...any) {
		w.WriteHeader(status)
		answer(w, map[string]any{"error": fmt.Sprintf(format, args...)})
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	name := strings.TrimPrefix(r.URL.Path, AdminPrefix)
	does, known := acts[name]
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case c.token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(c.token)) != 1: // two empty ones are equal
		refuse(http.StatusUnauthorized, "send the token that the cloud printed: -H 'Authorization: Bearer TOKEN'")
	case r.Method != http.MethodPost:
		refuse(http.StatusMethodNotAllowed, "send a POST")
	case !known:
		refuse(http.StatusNotFound, "there is no act %q; there are %s", name, strings.Join(Acts(), ", "))
	default:
		body, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		var a act
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(&a); err != nil {
			refuse(http.StatusBadRequest, "%s takes a JSON object: %v", name, err)
			return
		}
		if err := does(c, a); err != nil {
			refuse(http.StatusBadRequest, "%s: %s", name, strings.TrimPrefix(err.Error(), "cloudtputest: "))
			return
		}
		c.Catch()
		answer(w, map[string]any{})
	}
}
