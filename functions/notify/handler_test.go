package notify_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/functions/notify"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/trigger"
	"pitstop.internal/shared/view"
)

const (
	channel = "C0123456789"
	token   = "xoxb-very-secret"                   //nolint:gosec // made up
	secret  = "whsec_c2VjcmV0IG9mIHRoZSB3ZWJob29r" //nolint:gosec // made up
)

// receiver is a target: a server on loopback that keeps its requests and answers as a test wants.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []*http.Request
	bodies [][]byte
	// answer answers a request; without one the answer is 200 and Slack's success.
	answer func(w http.ResponseWriter, n int)
	told   func(body []byte)
}

func newReceiver(t testing.TB) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.got, r.bodies = append(r.got, q), append(r.bodies, body)
		n, answer, told := len(r.got), r.answer, r.told
		r.mu.Unlock()
		if told != nil {
			told(body)
		}
		if answer != nil {
			answer(w, n)
			return
		}
		_, _ = fmt.Fprintf(w, `{"ok":true,"ts":"17.%d"}`, n) //nolint:errcheck // who asked notices
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answers(f func(w http.ResponseWriter, n int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

func status(code int) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, _ int) { w.WriteHeader(code) }
}

// take returns the bodies that came since the last time, as objects.
func (r *receiver) take(t testing.TB) (bodies []map[string]any) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, raw := range r.bodies {
		var b map[string]any
		if err := json.Unmarshal(raw, &b); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		bodies = append(bodies, b)
	}
	r.bodies = nil
	return bodies
}

// desk is the function with a ledger in memory and a clock that stands still.
type desk struct {
	t     testing.TB
	clock *cloudtputest.ManualClock
	tap   *ledgertest.Tap
	// ledger is the function's, truth the same one for those who decide: it never fails.
	ledger, truth *ledger.Ledger
	// journal is a database of its own.
	journal *ledger.Journal
	mu      sync.Mutex
	log     *bytes.Buffer
	handle  trigger.Handle
	deps    notify.Deps
}

func newDesk(t testing.TB, perMinute int, targets ...func(d *desk) notify.Target) *desk {
	t.Helper()
	d := &desk{t: t, clock: cloudtputest.NewManualClock(fleettest.Start), tap: &ledgertest.Tap{}, log: &bytes.Buffer{}}
	open := ledgertest.NewStrictStore().Open
	unwritten := func(ctx context.Context, name string) (ledger.Collection, error) {
		c, err := open(ctx, name)
		return unwritten{c, t}, err
	}
	d.ledger, d.truth = ledger.New(d.tap.On(unwritten)), ledger.New(open)
	d.journal = ledger.NewJournal(d.tap.On(ledgertest.NewStrictStore().Open))
	t.Cleanup(func() { closed(t, d.ledger) })
	t.Cleanup(func() { closed(t, d.journal) })
	d.deps = notify.Deps{Ledger: d.ledger, Journal: d.journal, PerMinute: perMinute, Now: d.clock.Now, Log: slog.New(slog.NewJSONHandler(d.log, nil))}
	for _, target := range targets {
		d.deps.Targets = append(d.deps.Targets, target(d))
	}
	d.restart()
	return d
}

// unwritten is a collection of the ledger, into which the function may not write.
type unwritten struct {
	ledger.Collection
	t testing.TB
}

// Put implements ledger.Collection.
func (u unwritten) Put(_ context.Context, r *ledger.Record) error {
	u.t.Errorf("notify writes %s into the ledger", r.ID)
	return errors.New("not granted")
}

func closed(t testing.TB, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// restart has a new instance take over.
func (d *desk) restart() { d.handle = notify.New(d.deps) }

func slack(r *receiver) func(*desk) notify.Target {
	return func(*desk) notify.Target { return notify.NewSlackBot(r.URL+"/api/chat.postMessage", channel, token) }
}

func webhook(r *receiver) func(*desk) notify.Target {
	return func(d *desk) notify.Target {
		w, err := notify.NewWebhook(r.URL+"/hook", secret, d.clock.Now)
		if err != nil {
			d.t.Fatal(err)
		}
		return w
	}
}

// toSlack is a desk that tells one channel.
func toSlack(t testing.TB) (*receiver, *desk) {
	t.Helper()
	r := newReceiver(t)
	return r, newDesk(t, 20, slack(r))
}

// wants checks how many messages came since the last time.
func (r *receiver) wants(t testing.TB, n int) {
	t.Helper()
	if got := len(r.take(t)); got != n {
		t.Errorf("%d messages, want %d", got, n)
	}
}

// deliver lets an incident come as far as an update says, and brings the message of that.
func (d *desk) deliver(u events.IncidentUpdated) string {
	d.t.Helper()
	d.reach(u)
	return d.bring(fleettest.Request(u))
}

// reach lets an incident come as far as an update says, unless it is further.
func (d *desk) reach(u events.IncidentUpdated) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	old, rev, err := d.truth.Workload(d.t.Context(), u.Workload)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		d.t.Fatal(err)
	}
	v := old.Shown(time.Time{})
	for _, in := range []*view.Incident{v.Incident, v.Closed} {
		if in != nil && in.ID == u.Incident && in.Lines() >= u.Number {
			return
		}
	}
	d.save(documents.of(d.t, u), rev)
}

func (d *desk) save(w incident.Workload, rev ledger.Revision) {
	d.t.Helper()
	if _, err := d.truth.Save(d.t.Context(), w, rev); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) bring(ce cloudevents.Event) (outcome string) {
	d.t.Helper()
	defer func() {
		if p := recover(); p != nil {
			outcome = fleettest.Redelivered
		}
	}()
	return fleettest.Outcome(d.handle(d.t.Context(), ce))
}

func (d *desk) want(u events.IncidentUpdated, outcome string) {
	d.t.Helper()
	if got := d.deliver(u); got != outcome {
		d.t.Errorf("%s, number %d: %s, want %s", u.Step(), u.Number, got, outcome)
	}
}

func TestAnIncidentIsOneThreadInWhichEachStepIsToldOnce(t *testing.T) {
	r, d := toSlack(t)
	steps := course("llama")
	for _, u := range steps {
		d.want(u, fleettest.Handled)
		d.want(u, fleettest.Ignored)
	}
	d.restart()
	for _, u := range steps {
		d.want(u, fleettest.Ignored)
	}
	var threads []any
	for _, b := range r.take(t) {
		threads = append(threads, b["thread_ts"])
		if b["channel"] != channel || b["reply_broadcast"] != nil {
			t.Errorf("channel %v, broadcast %v", b["channel"], b["reply_broadcast"])
		}
	}
	if diff := cmp.Diff([]any{nil, "17.1", "17.1", "17.1"}, threads); diff != "" {
		t.Errorf("threads (-want +got):\n%s", diff)
	}
	if got := r.got[0].Header.Get("Authorization"); got != "Bearer "+token || r.got[0].URL.Path != "/api/chat.postMessage" {
		t.Errorf("authorization %q at %s", got, r.got[0].URL)
	}
}

// TestALongWaitIsToldOnce, each reminder as a word of its own, and none once the wait is over.
func TestALongWaitIsToldOnce(t *testing.T) {
	r, d := toSlack(t)
	p := &played{w: incident.New("demo", "llama", "gke"), p: night, now: fleettest.Start.Add(-3 * time.Hour)}
	reads := func(c evidence.Condition) {
		p.learns(func() evidence.Evidence {
			return evidence.Read{
				Origin: p.origin(), Slice: "llama", Zone: "us-east5/research/teams", Condition: c,
				Incarnation: events.Incarnation{Zone: "us-east5/research/teams", ID: "uid", Created: fleettest.Start.Add(-4 * time.Hour)},
				State:       string(c), Facts: evidence.Facts{Accelerator: "tpu-v6e-slice 4x4", Chips: 16, WaitsSince: fleettest.Start.Add(-4 * time.Hour)},
			}
		})
	}
	brings := func(u events.IncidentUpdated, want string) {
		t.Helper()
		_, rev, err := d.truth.Workload(t.Context(), p.w.ID)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			t.Fatal(err)
		}
		d.save(p.w, rev)
		if got := d.bring(fleettest.Request(u)); got != want {
			t.Errorf("%s: %s, want %s", u.Step(), got, want)
		}
	}
	reads(evidence.Creating)
	first := p.waits()
	brings(first, fleettest.Handled)
	brings(first, fleettest.Ignored)
	brings(p.waits(), fleettest.Handled)
	brings(first, fleettest.Ignored)
	r.wants(t, 2)
	third := p.waits()
	reads(evidence.Ready)
	brings(third, fleettest.Ignored)
}

// TestPeopleReadTheTermsOfTheTrainingService: the function derives them from the ledger, for people and for programs.
func TestPeopleReadTheTermsOfTheTrainingService(t *testing.T) {
	const says = "Internal error occurred for the current attempt"
	for target, words := range map[string][]string{
		"webhook": {`"job":{`, `"state":"FAILED"`, says}, "slack": {"FAILED, INTERNAL (13): " + says},
	} {
		r := newReceiver(t)
		d := newDesk(t, 60, map[string]func(*receiver) func(*desk) notify.Target{"webhook": webhook, "slack": slack}[target](r))
		d.want(escalated("llama-8b"), fleettest.Handled)
		for _, word := range words {
			if len(r.bodies) != 1 || !bytes.Contains(r.bodies[0], []byte(word)) {
				t.Errorf("%s: no %s in %s", target, word, r.bodies)
			}
		}
	}
}

func TestWhatAPersonHasToDoIsShownInTheChannel(t *testing.T) {
	r, d := toSlack(t)
	heals, asks := approving("llama")
	for _, u := range []events.IncidentUpdated{heals, asks, escalated("llama")} {
		d.want(u, fleettest.Handled)
	}
	var broadcast []any
	var said []string
	for _, b := range r.take(t) {
		broadcast = append(broadcast, b["reply_broadcast"])
		said = append(said, fmt.Sprint(b["text"]))
	}
	if diff := cmp.Diff([]any{nil, true, true}, broadcast); diff != "" {
		t.Errorf("broadcast (-want +got):\n%s", diff)
	}
	if want := "A person is needed: preemption of demo/llama, and idle chips cost $19.20 an hour"; said[2] != want {
		t.Errorf("it says %q, want %q", said[2], want)
	}
}

func TestATargetThatIsAwayHoldsUpNeitherAnIncidentNorTheOthers(t *testing.T) {
	away, there := newReceiver(t), newReceiver(t)
	d := newDesk(t, 20, slack(there), webhook(away))
	away.answers(status(http.StatusBadGateway))
	u := course("llama")[0]
	d.want(u, fleettest.Redelivered)
	d.want(u, fleettest.Redelivered)
	there.wants(t, 1)
	away.take(t)
	away.answers(nil)
	d.want(u, fleettest.Handled)
	there.wants(t, 0)
	away.wants(t, 1)
	away.Close()
	for range 3 {
		d.want(course("gemma")[0], fleettest.Redelivered)
	}
}

// hangUp takes a message and says nothing.
func hangUp(http.ResponseWriter, int) {
	panic(http.ErrAbortHandler)
}

// says is an answer of Slack's.
func says(problem string) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, _ int) { _, _ = w.Write([]byte(`{"ok":false,"error":"` + problem + `"}`)) } //nolint:errcheck // who asked notices
}

// in30s has an answer say when to come back.
func in30s(answer func(http.ResponseWriter, int)) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, n int) { w.Header().Set("Retry-After", "30"); answer(w, n) }
}

// follow delivers the steps of an incident as a script says, each with what has to come of it. It returns what the target was told until it
// was mended.
func (d *desk) follow(r *receiver, script string) (before []map[string]any) {
	d.t.Helper()
	steps, help := course("llama"), escalated("llama")
	outcomes := map[string]string{
		"handled": fleettest.Handled, "ignored": fleettest.Ignored, "later": fleettest.Later, "redelivered": fleettest.Redelivered,
	}
	for word := range strings.SplitSeq(script, ", ") {
		what, outcome, _ := strings.Cut(word, " ")
		switch what {
		case "mended":
			r.answers(nil)
			before = r.take(d.t)
		case "help":
			d.want(help, outcomes[outcome])
		case "0", "1", "2", "3":
			d.want(steps[what[0]-'0'], outcomes[outcome])
		default:
			wait, err := time.ParseDuration(what)
			if err != nil {
				d.t.Fatal(err)
			}
			d.clock.Advance(wait)
		}
	}
	return before
}

// TestWhatATargetAnswers: a refusal that no repetition mends is logged, and the next step is tried again; a target that wants to be left alone is.
// Where an answer is lost, or does not say whether the message arrived, a step that the next one covers is not repeated; an end or a question is
// sent once more, marked as a repetition.
func TestWhatATargetAnswers(t *testing.T) {
	const (
		refused = "0 handled, 0 ignored, mended, 1 handled"
		alone   = "0 later, mended, 29s, help later, 1s, help handled, 0 ignored"
		end     = ", 3 redelivered, 3 redelivered, 3 redelivered, 3 redelivered, 3 redelivered, 3 redelivered, mended, 3 handled, 3 ignored"
		unsure  = "0 redelivered, 0 ignored" + end
		sure    = "0 redelivered, 0 redelivered" + end
	)
	redirect := func(w http.ResponseWriter, _ int) {
		w.Header().Set("Location", "https://example.com")
		w.WriteHeader(http.StatusFound)
	}
	for name, c := range map[string]struct {
		target func(*receiver) func(*desk) notify.Target
		answer func(http.ResponseWriter, int)
		script string
		// again is how many messages come once it is mended, and marked that they say that they are sent again.
		again  int
		marked bool
	}{
		"refused by its status":           {slack, status(http.StatusForbidden), refused, 1, false},
		"refused by a redirect":           {slack, redirect, refused, 1, false},
		"refused in Slack's way":          {slack, says("channel_not_found"), refused, 1, false},
		"to be left alone by its status":  {slack, in30s(status(http.StatusTooManyRequests)), alone, 1, false},
		"to be left alone in Slack's way": {slack, in30s(says("ratelimited")), alone, 1, false},
		// The instance that began it may still be sending.
		"lost, a step that the next tells": {slack, hangUp, "0 redelivered, mended, 0 later, 1m, 0 ignored, 0 ignored", 0, false},
		"lost, the end":                    {slack, hangUp, "3 redelivered, mended, 3 later, 1m, 3 handled, 3 ignored", 1, true},
		"lost, what a person has to do":    {slack, hangUp, "help redelivered, mended, help later, 1m, help handled, help ignored", 1, true},
		"lost, of one who knows":           {webhook, hangUp, "0 redelivered, mended, 0 handled, 0 ignored", 1, false},
		"a bad gateway":                    {slack, status(http.StatusBadGateway), unsure, 1, true},
		"a gateway's timeout":              {slack, status(http.StatusGatewayTimeout), unsure, 1, true},
		"Slack's internal error":           {slack, says("internal_error"), unsure, 1, true},
		"Slack's fatal error":              {slack, says("fatal_error"), unsure, 1, true},
		"Slack is away":                    {slack, says("service_unavailable"), sure, 1, false},
		"a service that is away":           {slack, status(http.StatusServiceUnavailable), sure, 1, false},
		"a body that was cut off":          {slack, says("request_timeout"), sure, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t)
			d := newDesk(t, 20, c.target(r))
			r.answers(c.answer)
			before := d.follow(r, c.script)
			got := r.take(t)
			if d := cmp.Diff(before, got); d != "" && name == "lost, of one who knows" {
				t.Errorf("the repetition is another message:\n%s", d)
			}
			if len(got) != c.again || c.again > 0 && strings.Contains(fmt.Sprint(got[0]), "sent again") != c.marked {
				t.Errorf("told %v, want %d messages, marked %t", got, c.again, c.marked)
			}
			if c.script != refused {
				return
			}
			var l map[string]any
			if err := json.Unmarshal(d.log.Bytes(), &l); err != nil {
				t.Fatalf("%v: %s", err, d.log)
			}
			if l["level"] != "ERROR" || l["msg"] != "notification refused" || l["target"] != "slack-"+channel || l["incident"] != course("llama")[0].Incident {
				t.Errorf("logged %v", l)
			}
		})
	}
}

// TestACrashBehindTheMessage: the instance ends before it can save that the message was sent.
func TestACrashBehindTheMessage(t *testing.T) {
	r, d := toSlack(t)
	r.told = func([]byte) {
		d.tap.Before = func(_ context.Context, c ledgertest.Call) error {
			if c.Write {
				return errors.New("the database is away")
			}
			return nil
		}
	}
	steps := course("llama")
	d.want(steps[0], fleettest.Handled) // the message went out, which counts; the failed save is logged
	if !strings.Contains(d.log.String(), "the outcome of a notification was not recorded") {
		t.Errorf("logged: %s", d.log)
	}
	r.told, d.tap.Before = nil, nil
	d.restart()
	d.want(steps[0], fleettest.Later)
	d.want(steps[1], fleettest.Later)
	d.clock.Advance(time.Minute)
	d.want(steps[1], fleettest.Handled)
	d.want(steps[0], fleettest.Ignored)
	r.wants(t, 2)
}

func TestWhatCannotBeSavedIsNotTold(t *testing.T) {
	r, d := toSlack(t)
	d.tap.Before = func(context.Context, ledgertest.Call) error { return errors.New("the database is away") }
	d.want(course("llama")[0], fleettest.Redelivered)
	r.wants(t, 0)
}

func TestOfManyAtOnceOneTells(t *testing.T) {
	r := newReceiver(t)
	d := newDesk(t, 1000, slack(r))
	u := course("llama")[0]
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { d.deliver(u) })
	}
	wg.Wait()
	d.clock.Advance(time.Minute)
	d.want(u, fleettest.Ignored)
	r.wants(t, 1)
}

// TestMoreThanAMinuteTakesIsToldTogether: quiet messages wait for the next minute, and a part of this one is kept for loud
// ones.
func TestMoreThanAMinuteTakesIsToldTogether(t *testing.T) {
	r := newReceiver(t)
	d := newDesk(t, 4, slack(r))
	var updates []events.IncidentUpdated
	for i := range 6 {
		updates = append(updates, course(fmt.Sprintf("w%d", i))[0])
	}
	for i, u := range updates[:5] {
		d.want(u, []string{fleettest.Handled, fleettest.Handled, fleettest.Handled, fleettest.Later, fleettest.Later}[i])
	}
	newer := course("w3")[1]
	d.want(newer, fleettest.Later)
	d.want(updates[3], fleettest.Later) // which finds what waits already
	d.want(escalated("w0"), fleettest.Handled)
	d.want(escalated("w1"), fleettest.Later)
	r.take(t)

	d.clock.Advance(time.Minute)
	d.want(updates[5], fleettest.Handled)
	d.want(newer, fleettest.Ignored)
	d.want(updates[3], fleettest.Ignored)
	d.want(updates[4], fleettest.Ignored)
	d.want(escalated("w1"), fleettest.Ignored)
	got := r.take(t)
	if len(got) != 1 || got[0]["text"] != "4 incidents at once, one of them needs a person" {
		t.Fatalf("told %v, want one message of four incidents", got)
	}
	// What comes next of one of them has a thread of its own.
	d.want(course("w3")[2], fleettest.Handled)
	if got := r.take(t); len(got) != 1 || got[0]["thread_ts"] != nil {
		t.Errorf("told %v, want a message that begins a thread", got)
	}
}

func TestAWebhookIsSigned(t *testing.T) {
	r := newReceiver(t)
	d := newDesk(t, 20, webhook(r))
	u := escalated("llama")
	d.want(u, fleettest.Handled)
	q, body := r.got[0], r.bodies[0]
	id, at := q.Header.Get("Webhook-Id"), q.Header.Get("Webhook-Timestamp")
	step := events.ID(u.Workload, u.Incident, events.TypeIncidentUpdated, u.Step())
	if id != step || at != strconv.FormatInt(fleettest.Start.Unix(), 10) {
		t.Errorf("ID %q, time %q", id, at)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	h := hmac.New(sha256.New, key)
	h.Write(fmt.Appendf(nil, "%s.%s.%s", id, at, body))
	if got, want := q.Header.Get("Webhook-Signature"), "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("signature %q, want %q", got, want)
	}
}

// TestNothingSecretIsLogged has every target fail in every way, and looks for what may not be seen.
func TestNothingSecretIsLogged(t *testing.T) {
	const private = "T00-very-secret-path"
	for name, answer := range map[string]func(http.ResponseWriter, int){
		"refused": status(http.StatusForbidden), "failed": status(http.StatusInternalServerError), "silent": hangUp, "away": nil,
	} {
		r := newReceiver(t)
		address := r.URL + "/" + private
		if answer == nil {
			r.Close()
		}
		r.answers(answer)
		d := newDesk(t, 20, slack(r), webhook(r),
			func(*desk) notify.Target { return notify.NewSlackWebhook(address) },
			func(*desk) notify.Target { return notify.NewChat(address + "?key=k&token=" + token) })
		u := escalated("llama")
		d.reach(u)
		err := d.handle(t.Context(), fleettest.Request(u))
		said := fmt.Sprint(err) + d.log.String()
		for _, hidden := range []string{private, token, secret, "c2VjcmV0"} {
			if strings.Contains(said, hidden) {
				t.Errorf("%s: %q is told: %s", name, hidden, said)
			}
		}
		if fault.IsPermanent(err) || name != "refused" && err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWithoutATargetEverythingIsAcknowledged(t *testing.T) {
	d := newDesk(t, 20)
	d.want(course("llama")[0], fleettest.Ignored)
	if d.tap.Writes() != 0 {
		t.Error("something was written")
	}
}

// pubsub redelivers unacknowledged messages, each with its own backoff, on the desk's clock.
type pubsub struct {
	d     *desk
	queue []*queued
}

type queued struct {
	update   events.IncidentUpdated
	message  cloudevents.Event
	at       time.Time
	attempts int
}

func (p *pubsub) publish(u events.IncidentUpdated, times int, at func() time.Time) {
	message := fleettest.Request(u)
	for range times {
		p.queue = append(p.queue, &queued{update: u, message: message, at: at()})
	}
}

// drain delivers until everything is acknowledged, and returns the most deliveries that a message took.
func (p *pubsub) drain(after func()) (most int) {
	for len(p.queue) > 0 {
		slices.SortStableFunc(p.queue, func(a, b *queued) int { return a.at.Compare(b.at) })
		now := p.d.clock.Now()
		if next := p.queue[0].at; next.After(now) {
			p.d.clock.Advance(next.Sub(now))
			now = next
		}
		n := 0
		for n < len(p.queue) && !p.queue[n].at.After(now) {
			n++
		}
		due := p.queue[:n:n]
		p.queue = p.queue[n:]
		for _, q := range due {
			q.attempts++
			most = max(most, q.attempts)
			if q.attempts == 1 {
				p.d.reach(q.update)
			}
			switch p.d.bring(q.message) {
			case fleettest.Later, fleettest.Redelivered:
				wait := min(10*time.Second<<min(q.attempts-1, 6), 600*time.Second)
				q.at = now.Add(wait)
				p.queue = append(p.queue, q)
			}
		}
		if after != nil {
			after()
		}
	}
	return most
}

// TestAStorm: thousands of updates at once, in any order, every tenth of them twice. Each phase of an incident is sent at most
// once, each end is sent, and no minute brings more messages than the limit.
func TestAStorm(t *testing.T) {
	const perMinute = 20
	incidents := breadth.Of(2500/breadth.Every(5), 100)
	r := newReceiver(t)
	d := newDesk(t, perMinute, webhook(r))
	told := map[string]int{}
	var times []time.Time
	r.told = func(body []byte) {
		var m struct {
			Updates []struct {
				Step     string
				Incident struct{ Incident string }
			}
		}
		if err := json.Unmarshal(body, &m); err != nil {
			t.Error(err)
		}
		times = append(times, d.clock.Now())
		for _, u := range m.Updates {
			told[u.Incident.Incident+" "+u.Step]++
		}
	}
	p := &pubsub{d: d}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test that can be repeated
	for i := range incidents {
		for n, u := range course(fmt.Sprintf("w%d", i)) {
			p.publish(u, 1+(4*i+n)%10/9, func() time.Time { return fleettest.Start.Add(time.Duration(random.IntN(60)) * time.Second) })
		}
	}
	most := p.drain(nil)
	for what, n := range told {
		if n > 1 {
			t.Errorf("%s was sent %d times", what, n)
		}
	}
	for i := range incidents {
		if u := course(fmt.Sprintf("w%d", i))[3]; told[u.Incident+" resumed"] != 1 {
			t.Fatalf("the end of %s was sent %d times", u.Incident, told[u.Incident+" resumed"])
		}
	}
	for i := range times {
		if j := i + perMinute; j < len(times) && times[j].Sub(times[i]) < time.Minute {
			t.Fatalf("more than %d messages within a minute, from %s on", perMinute, times[i])
		}
	}
	if most >= 20 {
		t.Errorf("a message took %d deliveries, and 20 put it aside", most)
	}
	t.Logf("%d messages in %v, at most %d deliveries of one update", len(times), times[len(times)-1].Sub(times[0]).Round(time.Second), most)
}

// toldBy lists the news in a message, each with the workload in front. A repetition that a program recognizes is no news.
func toldBy(t *testing.T, body []byte, known map[string]int) (all []string) {
	t.Helper()
	var m struct {
		Text   string
		Blocks []struct {
			Fields, Elements []struct{ Text string }
		}
		Updates []struct{ ID, Text string }
	}
	if err := json.Unmarshal(body, &m); err != nil {
		t.Error(err)
	}
	one := func(text string) string {
		if rest, ok := strings.CutPrefix(text, "A person is needed: preemption of "); ok {
			name, _, _ := strings.Cut(rest, ",")
			return name + ": a person is needed"
		}
		return strings.TrimPrefix(text, "preemption of ")
	}
	if m.Updates != nil {
		for _, u := range m.Updates {
			if known[u.ID] == 0 {
				known[u.ID] = 1
				all = append(all, one(u.Text))
			}
		}
		return all
	}
	again := ""
	if strings.Contains(string(body), "sent again") {
		again = "again "
	}
	if !strings.Contains(m.Text, "incidents at once") {
		return []string{again + one(m.Text)}
	}
	for _, b := range m.Blocks {
		if b.Fields == nil || b.Fields[0].Text != "*Workloads*" {
			continue
		}
		for text := range strings.SplitSeq(b.Fields[1].Text, " · ") { // the first few are named
			all = append(all, again+strings.Replace(text, " (preemption)", "", 1))
		}
	}
	return all
}

// TestWhatGoesWrongLosesAndRepeatsNothing lets everything go wrong by chance: deliveries repeat, overtake each other, and
// stop in the middle; the ledger and the target fail, before and after they act.
func TestWhatGoesWrongLosesAndRepeatsNothing(t *testing.T) {
	for seed := range breadth.Of[uint64](30, 6) {
		random := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a test that can be repeated
		r := newReceiver(t)
		target := slack
		if seed%2 == 1 {
			target = webhook
		}
		d := newDesk(t, 5, target(r))
		var mu sync.Mutex
		chance := func(percent int) bool {
			mu.Lock()
			defer mu.Unlock()
			return random.IntN(100) < percent
		}
		d.tap.Before = func(context.Context, ledgertest.Call) error {
			if chance(5) {
				return errors.New("the database is away")
			}
			return nil
		}
		d.tap.After = func(_ context.Context, c ledgertest.Call, err error) error {
			if c.Write && err == nil && chance(5) {
				return errors.New("the answer of the database is lost")
			}
			return err
		}
		told := map[string]int{}
		count := func(body []byte) {
			mu.Lock()
			defer mu.Unlock()
			for _, what := range toldBy(t, body, told) {
				told[what]++
			}
		}
		var last []byte
		r.told = func(body []byte) { last = body }
		r.answers(func(w http.ResponseWriter, n int) {
			switch body := last; {
			case chance(8):
				w.WriteHeader(http.StatusInternalServerError)
			case chance(8):
				count(body)
				panic(http.ErrAbortHandler)
			default:
				count(body)
				_, _ = fmt.Fprintf(w, `{"ok":true,"ts":"%d"}`, n) //nolint:errcheck // who asked notices
			}
		})
		p := &pubsub{d: d}
		const incidents = 7 // a message names them all
		for i := range incidents {
			steps := course(fmt.Sprintf("w%d", i))
			if i%3 == 0 {
				steps[3] = escalated(fmt.Sprintf("w%d", i))
			}
			for n, u := range steps {
				p.publish(u, 1+random.IntN(2), func() time.Time {
					return fleettest.Start.Add(time.Duration(n)*time.Minute + time.Duration(random.IntN(200))*time.Second)
				})
			}
		}
		p.drain(func() {
			if chance(3) {
				d.restart() // what an instance remembers goes with it
			}
		})
		for what, n := range told {
			if n > 1 && !strings.HasPrefix(what, "again ") || n > 3 {
				t.Errorf("seed %d: %q was sent %d times", seed, what, n)
			}
		}
		for i := range incidents {
			name, end := fmt.Sprintf("demo/w%d: ", i), 0
			for what, n := range told {
				if rest, ok := strings.CutPrefix(strings.TrimPrefix(what, "again "), name); ok && (strings.HasPrefix(rest, "training resumed") || strings.HasPrefix(rest, "a person")) {
					end += n
				}
			}
			if end == 0 {
				t.Errorf("seed %d: the end of w%d was not sent", seed, i)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// TestNothingIsAcknowledgedThatCouldNotBeStored: whichever call of the ledger fails.
func TestNothingIsAcknowledgedThatCouldNotBeStored(t *testing.T) {
	fleettest.WithoutLedger(t, func(t *testing.T) fleettest.Delivery {
		r, d := toSlack(t)
		u := course("llama")[0]
		return fleettest.Delivery{
			Tap:     d.tap,
			Deliver: func() string { return d.deliver(u) },
			Stored:  func() string { return fmt.Sprint(len(r.take(t)) > 0) },
		}
	}, fleettest.Redelivered, fleettest.Later)
}
