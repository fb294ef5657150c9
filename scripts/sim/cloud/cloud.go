// Package cloud serves a simulated Google Cloud on one socket of this machine: the Cloud TPU API, Cloud Storage, Cloud Logging and the
// metadata servers of the TPUs' machines, as Google's clients call them. It runs no training and none of Pitstop's functions: those
// are its clients.
package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"pitstop.internal/scripts/sim/clock"
	"pitstop.internal/scripts/sim/loopback"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/cloudlog/cloudlogtest"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/view"
)

// Zones are the zones of a cloud without a fleet. Each has capacity for every slice.
var Zones = []string{"us-central1-a", "us-central2-b", "us-east5-a", "us-west4-a", "europe-west4-b"}

// Config is how a cloud begins.
type Config struct {
	// Fleet is the project, its slices, and the capacity and quota of its zones. Without a project it is "demo". Without zones it has
	// those of Zones.
	Fleet world.Scenario
	// Speed is how many times as fast everything goes that takes time in the cloud, such as the creation of a node; 1 when zero.
	Speed float64
	// Now is the time of this machine; time.Now when nil.
	Now func() time.Time
	// Token is the password of the calls that make something happen; without one nobody can make them.
	Token string
	// Logged is called with every entry of the log, as a sink is; nil is none.
	Logged func(entry []byte)
	// Observed is called with every event of the Cloud TPU API; nil is none.
	Observed func(cloudtputest.Event)
	// Timing is how long things take; as Google takes when nil.
	Timing *cloudtputest.Timing
}

// Cloud is a simulated Google Cloud. It is safe for concurrent use.
type Cloud struct {
	API    *cloudtputest.API
	Bucket *buckettest.Server
	Log    *cloudlogtest.Log

	now    func() time.Time
	clock  *clock.Clock
	token  string
	logged func(entry []byte)
	// observed is that of the Config.
	observed func(cloudtputest.Event)
	logs     *grpc.Server
	// inserted counts the entries that got their ID here.
	inserted atomic.Uint64
	// catching has one goroutine move the clock at a time.
	catching sync.Mutex
	// maintenanceTakes is how long maintenance lasts.
	maintenanceTakes time.Duration

	// supplying has one act change capacity at a time.
	supplying sync.Mutex
	supplies  map[view.Place]*supply

	mu       sync.Mutex
	machines map[machineID]*machine
}

// New makes a cloud with its fleet.
func New(c Config) (*Cloud, error) {
	fleet, _ := c.Fleet.Provided()
	if fleet.Project = cmp.Or(fleet.Project, "demo"); len(fleet.Capacity) == 0 {
		fleet.Capacity = map[string]int{}
		for _, zone := range Zones {
			fleet.Capacity[zone] = cloudtputest.Unlimited
		}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Timing == nil {
		c.Timing = &cloudtputest.DefaultTiming
	}
	timing := c.Timing.Faster(cmp.Or(c.Speed, 1))
	cloud := &Cloud{
		now: c.Now, clock: clock.NewClock(c.Now()), token: c.Token, logged: c.Logged, observed: c.Observed, maintenanceTakes: timing.Maintenance,
		machines: map[machineID]*machine{}, supplies: map[view.Place]*supply{},
	}
	cloud.logs = newLogWriter(cloud)
	cloud.API = cloudtputest.New(cloudtputest.Config{
		Project: fleet.Project, Clock: cloud.clock, Seed: uint64(c.Now().UnixNano()), Zones: maps.Clone(fleet.Capacity),
		Principal: world.Ours(fleet.Project), Timing: timing,
	})
	for zone, chips := range fleet.Quota {
		cloud.API.SetQuota(zone, chips)
	}
	cloud.Bucket = buckettest.New(cloud.clock.Now)
	for name, region := range fleet.Buckets {
		cloud.Bucket.Place(name, buckettest.Location{Name: strings.ToUpper(region)})
	}
	for _, s := range fleet.Fleet {
		if rest, ok := strings.CutPrefix(s.Directory, "gs://"); ok {
			name, _, _ := strings.Cut(rest, "/")
			cloud.Bucket.Add(name)
		}
	}
	cloud.Log = cloudlogtest.New(fleet.Project, cloud.clock.Now)
	if err := fleet.Provide(cloud.API, c.Now()); err != nil {
		return nil, err
	}
	cloud.API.Observe(cloud.observe)
	return cloud, nil
}

// Parts are a simulated cloud that somebody else runs: who moves its clock, brings its entries to the log, and passes its events to
// Tell.
type Parts struct {
	API    *cloudtputest.API
	Bucket *buckettest.Server
	Log    *cloudlogtest.Log
	Clock  *clock.Clock
	// Token is the password of the calls that make something happen. Maintenance is how long maintenance lasts.
	Token       string
	Maintenance time.Duration
	// Logged is called with every entry that a client writes to the log; nil is none.
	Logged func(entry []byte)
}

// Over is a cloud on a socket over the parts of one that somebody else runs.
func Over(p Parts) *Cloud {
	c := &Cloud{
		API: p.API, Bucket: p.Bucket, Log: p.Log, clock: p.Clock, token: p.Token, logged: p.Logged, maintenanceTakes: p.Maintenance,
		machines: map[machineID]*machine{}, supplies: map[view.Place]*supply{},
	}
	c.logs = newLogWriter(c)
	return c
}

// Clock is the cloud's clock. It moves when somebody calls, and many times a second while the cloud is served.
func (c *Cloud) Clock() cloudtputest.Clock { return c.clock }

// Owner is who calls with a tool of an owner's, such as gcloud, and without an address as its token. Everybody else is Pitstop.
func (c *Cloud) Owner() string { return "owner@" + c.API.Project() + ".example.com" }

// ownersTools begin the user agents of the tools that people call Google with.
var ownersTools = []string{"google-cloud-sdk", "Terraform", "curl"}

// observe tells the machines of an event, and writes the entries that Google writes about it.
func (c *Cloud) observe(e cloudtputest.Event) {
	c.Tell(e)
	if c.observed != nil {
		c.observed(e)
	}
	if entry := cloudtputest.AuditEntry(e); entry != nil {
		c.Enter(entry)
	}
	for _, entry := range cloudtputest.SystemEntries(e) {
		c.Enter(entry)
	}
}

// Catch brings the cloud's clock to the present time and makes happen what is due, unless somebody else moves the clock.
func (c *Cloud) Catch() {
	if c.now == nil {
		return
	}
	c.catching.Lock()
	defer c.catching.Unlock()
	present := c.now()
	for c.clock.StepBefore(present) {
		continue
	}
	c.clock.Advance(present)
}

// ServeHTTP implements http.Handler. The path says which service is called, as on Google's hosts.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.Catch()
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, AdminPrefix):
		c.serveAdmin(w, r)
	case strings.HasPrefix(path, machinePrefix):
		c.serveMachine(w, r)
	case strings.HasPrefix(path, "/google.logging.v2."):
		c.logs.ServeHTTP(w, r)
	case strings.HasPrefix(path, "/v2/entries"):
		c.serveLogs(w, r)
	case strings.HasPrefix(path, "/storage/v1/"), strings.HasPrefix(path, "/upload/storage/v1/"):
		c.Bucket.ServeHTTP(w, r)
	default:
		c.name(r)
		c.API.ServeHTTP(w, r)
	}
}

// name has a caller say who calls. A token that is no address says nothing, and may be a real one that must not get into the log.
func (c *Cloud) name(r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if strings.Contains(token, "@") {
		return
	}
	r.Header.Del("Authorization")
	agent := r.UserAgent()
	if token != machineToken && slices.ContainsFunc(ownersTools, func(t string) bool { return strings.HasPrefix(agent, t) }) {
		r.Header.Set("Authorization", "Bearer "+c.Owner())
	}
}

// TransportAs calls the cloud without a socket, as somebody.
func (c *Cloud) TransportAs(principal string) http.RoundTripper {
	return world.RoundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+principal)
		if r.Body == nil {
			r.Body = http.NoBody // as on a server
		}
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		answer := w.Result()
		answer.Request = r
		return answer, nil
	})
}

// Server is a server of the protocols that Google's clients speak, on loopback.
func Server(h http.Handler) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true) // gRPC
	return &http.Server{Handler: loopback.Only(h), Protocols: &protocols, ReadHeaderTimeout: 10 * time.Second}
}

// beat is how often the clock of a served cloud is brought to the present time when nobody calls.
const beat = 50 * time.Millisecond

// Serve serves the cloud until the context ends, and then ends every call at once.
func (c *Cloud) Serve(ctx context.Context, l net.Listener) error {
	s := Server(c)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t := time.NewTicker(beat)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			c.Catch()
		case err := <-ended:
			return fmt.Errorf("serve %s: %w", l.Addr(), err)
		case <-ctx.Done():
			err := s.Close()
			if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
				err = errors.Join(err, served)
			}
			return err
		}
	}
}

// Listen listens at HOST:PORT on the loopback interface. Only the acts ask for a token, so no other machine may reach the cloud.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%q is no address such as 127.0.0.1:8090", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%s can be reached from other machines: listen on 127.0.0.1, [::1] or localhost", address)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		var failed *net.OpError
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another port, or 0 for a free one", address, err)
	}
	return l, nil
}
