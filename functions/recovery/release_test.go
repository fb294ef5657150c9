package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/functions/recovery"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
)

// cluster is a provider that has one Job, and notes which Pods are released.
type cluster struct {
	recovery.Provider
	slice    provider.Slice
	unread   error
	refuses  error
	after    int // how many are released before it refuses
	hears    func()
	released []provider.Hung
}

func (c *cluster) Read(context.Context, provider.Ref) (provider.Slice, error) {
	return c.slice, c.unread
}

func (c *cluster) Release(_ context.Context, r provider.Ref, h provider.Hung) error {
	if r.Life != h.Life {
		return errors.New("another life")
	}
	if c.released = append(c.released, h); len(c.released) <= c.after {
		return nil
	}
	if c.hears != nil {
		c.hears()
	}
	return c.refuses
}

const (
	scope     = "us-east5/trainers/default"
	job       = "mixtral"
	workload  = fleettest.Project + "/" + job
	directory = fleettest.Directory + "-job"
)

// zombie is a Job that Pitstop has deleted, and whose Pod hangs on a machine that does not answer.
type zombie struct {
	*bench
	cluster *cluster
}

// toRelease is a zombie, and the request to take its Job out of the lease that its crew has written.
func toRelease(t *testing.T) *zombie {
	t.Helper()
	b := &zombie{&bench{Bench: fleettest.New(t)}, &cluster{}}
	b.Fleet.Provider = provider.Set{provider.CloudTPU: b.Cloud}
	life := events.Incarnation{Zone: scope, ID: "uid-1", Created: b.Clock.Now()}
	ref := provider.Ref{Project: fleettest.Project, Zone: scope, Name: job}
	read := func(c incident.Condition) incident.Workload {
		b.Clock.Advance(time.Minute)
		w, err := b.Fleet.Observe(t.Context(), provider.Slice{
			Ref: ref, At: b.Clock.Now(), Condition: c, State: string(c), Spot: true, Healing: incident.HealsNever, Incarnation: life,
			Labels: map[string]string{events.LabelPolicy: "trains"}, Directory: directory, Workers: 1, Chips: 8, Spec: []byte("{}"), SpecHash: "spec",
		})
		b.Must(err)
		return w
	}
	file, err := policy.Parse([]byte("policies: {trains: {preset: spot, switches: {release: yes}}}"))
	b.Must(err)
	b.Policies.File = file
	read(incident.Ready)
	read(incident.Lost)
	b.lease(checkpoint.Lease{Workload: workload, Attempt: 4, By: "crew", Admitted: []events.Admission{{Slice: job, Incarnation: life}}}, 0)
	remove, _ := fleettest.One(t, b.Bench, events.DecodeRecreateRequested)
	_, err = b.Fleet.Advancer.Begin(t.Context(), remove.Request, "request-id-0")
	b.Must(err)
	_, err = b.Fleet.Advancer.Answer(t.Context(), remove.Request, "", "accepted", nil)
	b.Must(err)
	b.cluster.slice = provider.Slice{
		Ref: ref, Condition: incident.Deleting, State: "deleting: its Pod has not ended", Remains: true,
		Hung: []provider.Hung{{Name: "mixtral-0-x", ID: "p-1", Machine: "n1", Life: life.ID, Since: b.Clock.Now(), Lease: directory + "/"}},
	}
	b.look()
	b.request = b.next()
	b.Want(b.request.Action, events.ActionRelease)
	return b
}

// look carries a reading of what hangs into the ledger, a minute later, with a tick.
func (b *zombie) look() {
	b.T.Helper()
	b.Clock.Advance(time.Minute)
	s := b.cluster.slice
	s.At = b.Clock.Now()
	w, err := b.Fleet.Feed(b.T.Context(), b.Workload(workload), s)
	b.Must(err)
	b.Give(w, incident.Ticked{})
}

// lease writes a lease over a generation.
func (b *zombie) lease(l checkpoint.Lease, over int64) {
	b.T.Helper()
	l.Schema, l.Written = events.Schema, b.Clock.Now()
	b.Must(checkpoint.ReplaceLease(b.T.Context(), b.Store, directory, l, over))
}

// content is the lease as it is stored, with its generation.
func (b *zombie) content() string {
	content, generation, _ := b.Storage.Get(fleettest.Bucket, "run-job/"+checkpoint.LeaseName)
	return fmt.Sprintf("%d %s", generation, content)
}

// writes changes the lease, whoever wrote it.
func (b *zombie) writes(change func(l *checkpoint.Lease)) {
	b.T.Helper()
	l, _ := b.reads()
	change(&l)
	content, err := json.Marshal(l)
	b.Must(err)
	b.Storage.Put(fleettest.Bucket, "run-job/"+checkpoint.LeaseName, content)
}

// reads is the lease that is there.
func (b *zombie) reads() (checkpoint.Lease, int64) {
	b.T.Helper()
	l, generation, err := checkpoint.ReadLease(b.T.Context(), b.Store, directory)
	b.Must(err)
	return l, generation
}

func (b *zombie) deliver() string {
	b.T.Helper()
	h := recovery.New(recovery.Deps{Fleet: b.Fleet, Provider: b.cluster, Store: b.Store, Limits: ledger.DefaultLimits})
	return b.Deliver(h, fleettest.Request(b.request))
}

// waits lets minutes pass until the next request comes.
func (b *zombie) waits() {
	b.T.Helper()
	for range 20 {
		b.look()
		if all := fleettest.All(b.T, b.Bench, events.DecodeRecoveryRequested); len(all) > 0 {
			b.request = all[0]
			return
		}
	}
	b.T.Fatal("nothing is asked for")
}

// TestAZombieIsReleasedOnceTheLeaseHasNotNamedItForSixMinutes: by its UID, once, and the record says which.
func TestAZombieIsReleasedOnceTheLeaseHasNotNamedItForSixMinutes(t *testing.T) {
	b := toRelease(t)
	b.Want(b.deliver(), fleettest.Handled)
	l, _ := b.reads()
	written := b.Clock.Now()
	if len(l.Admitted) > 0 || l.By != "pitstop" || l.Incident != b.request.Incident || l.Epoch != b.request.Epoch || l.Attempt != 4 || !l.Written.Equal(written) {
		t.Errorf("the lease is %+v", l)
	}
	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(len(b.cluster.released), 0)
	b.waits()
	if waited := b.Clock.Now().Sub(written); waited < incident.TakeOverFor {
		t.Errorf("it was asked for %s after the lease", waited)
	}
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.cluster.released, b.cluster.slice.Hung)
	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(len(b.cluster.released), 1)
	in := b.Workload(workload).Incident
	if last := in.Timeline[len(in.Timeline)-1]; last.Text != "ended unheard: mixtral-0-x (UID p-1) on n1" {
		t.Errorf("the record says %+v", last)
	}
}

// TestWhoMayStillWriteIsNotReleased: without a lease that its crew obeys, and that Pitstop alone has written, nobody knows.
func TestWhoMayStillWriteIsNotReleased(t *testing.T) {
	h := func(b *zombie) *provider.Hung { return &b.cluster.slice.Hung[0] }
	for name, change := range map[string]func(b *zombie){
		"its machine answers":          func(b *zombie) { b.cluster.slice.Hung = nil },
		"it is of another life":        func(b *zombie) { h(b).Life = "uid-0" },
		"it has no crew":               func(b *zombie) { h(b).Lease = "" },
		"its crew obeys another lease": func(b *zombie) { h(b).Lease = fleettest.Directory },
		"the cluster cannot be read":   func(b *zombie) { b.cluster.unread = errors.New("away") },
		"there is no lease":            func(b *zombie) { b.Storage.Delete(fleettest.Bucket, "run-job/"+checkpoint.LeaseName) },
		"the lease is another's":       func(b *zombie) { b.writes(func(l *checkpoint.Lease) { l.Workload = "demo/other" }) },
		"the lease cannot be read":     func(b *zombie) { b.Storage.Put(fleettest.Bucket, "run-job/"+checkpoint.LeaseName, []byte("{")) },
		"the lease names another life": func(b *zombie) {
			b.writes(func(l *checkpoint.Lease) {
				l.By, l.Epoch, l.Admitted = "crew", 0, []events.Admission{{Slice: job, Incarnation: events.Incarnation{ID: "uid-9"}}}
			})
		},
		"its crew trains by another name": func(b *zombie) {
			b.writes(func(l *checkpoint.Lease) {
				l.By, l.Epoch, l.Admitted = "crew", 0, []events.Admission{{Slice: "mixtral-0", Workers: "mixtral"}}
			})
		},
		"Pitstop's lease names a crew's own name": func(b *zombie) {
			b.writes(func(l *checkpoint.Lease) {
				l.By, l.Incident, l.Admitted = "pitstop", b.request.Incident, []events.Admission{{Slice: "mixtral-0", Workers: "mixtral"}}
			})
		},
		"the lease names it without a life": func(b *zombie) {
			b.writes(func(l *checkpoint.Lease) {
				l.By, l.Epoch, l.Admitted = "crew", 0, []events.Admission{{Slice: job, Workers: "mixtral"}}
			})
		},
		"a crew's lease names nothing": func(b *zombie) {
			b.writes(func(l *checkpoint.Lease) { l.By, l.Epoch, l.Admitted = "crew", 0, nil })
		},
		"the lease is of a newer epoch":  func(b *zombie) { b.writes(func(l *checkpoint.Lease) { l.Epoch = b.request.Epoch + 1 }) },
		"everything is paused":           func(b *zombie) { b.Must(b.Ledger.SetPause(b.T.Context(), &incident.Pause{By: "ada"})) },
		"the switch is no by now":        func(b *zombie) { b.Policies.Ceiling.Release = policy.No },
		"the switch is ask by now":       func(b *zombie) { b.Policies.Ceiling.Release = policy.Ask },
		"the policy cannot be read":      func(b *zombie) { b.Policies.Unreadable = "away" },
		"the request is of an old epoch": func(b *zombie) { b.request.Epoch-- },
	} {
		for _, second := range []bool{false, true} {
			b := toRelease(t)
			if second {
				b.Want(b.deliver(), fleettest.Handled)
				b.waits()
			}
			before := b.content()
			change(b)
			changed := b.content()
			b.deliver()
			if len(b.cluster.released) > 0 {
				t.Errorf("%s, second %t: %+v is released", name, second, b.cluster.released)
			}
			if after := b.content(); after != changed {
				t.Errorf("%s, second %t: the lease was %s and is %s", name, second, before, after)
			}
		}
	}
}

// TestOnlyWhatIsReleasedTogetherLeavesTheLease: a Job whose deletion waits may train on, and one that hangs as well would be refused a
// write of its own. A life that is not the one that hangs stays.
func TestOnlyWhatIsReleasedTogetherLeavesTheLease(t *testing.T) {
	for name, c := range map[string]struct {
		with  bool   // the other Job is released, too
		group bool   // one deletion has deleted both
		life  string // what the lease names of it
		stays bool
	}{
		"its deletion waits":               {false, false, "uid-7", true},
		"the same deletion has deleted it": {false, true, "uid-7", false},
		"its owner has made it anew":       {false, true, "uid-8", true},
		"it hangs, too":                    {true, false, "uid-7", false},
		"it hangs in another life":         {true, false, "uid-8", true},
	} {
		b := toRelease(t)
		other := events.Incarnation{Zone: scope, ID: "uid-7"}
		b.Change(workload, func(w *incident.Workload) {
			s := w.Slices[0]
			s.Name, s.Incarnation, s.ToReplace, s.Admission = "other", other, true, incident.Admitted
			w.Slices = append(w.Slices, s)
			if c.group {
				w.Effects[0].With, w.Effects[0].Lives = []string{s.Name}, []events.Incarnation{other}
			}
			for _, e := range w.Effects {
				if e.Slice, e.Incarnation = s.Name, other; c.with && e.Action == events.ActionRelease {
					w.Effects = append(w.Effects, e)
				}
			}
		})
		other.ID = c.life
		b.writes(func(l *checkpoint.Lease) {
			l.Admitted = append(l.Admitted, events.Admission{Slice: "other", Incarnation: other})
		})
		b.Want(b.deliver(), fleettest.Handled)
		l, _ := b.reads()
		if stays := len(l.Admitted) == 1 && l.Admitted[0].Slice == "other"; stays != c.stays || !stays && len(l.Admitted) > 0 {
			t.Errorf("%s: the lease is %+v", name, l)
		}
		if w := b.Workload(workload); w.Slice("other").Admitted().Known() == (c.with || c.group) || w.Slice(job).Admitted().Known() {
			t.Errorf("%s: the ledger believes in %v and %v", name, w.Slice("other").Admitted(), w.Slice(job).Admitted())
		}
		if !c.with {
			continue
		}
		before := b.content()
		b.request.Slice, b.request.Incarnation.ID, b.cluster.slice.Hung[0].Life, b.cluster.slice.Name = "other", "uid-7", "uid-7", "other"
		b.deliver()
		if after := b.content(); after != before {
			t.Errorf("%s: the lease was %s and is %s", name, before, after)
		}
	}
}

// TestTheLeaseIsReadAgainBeforeAPodIsEnded: by Pitstop's own time and by what the lease says, and only as Pitstop left it.
func TestTheLeaseIsReadAgainBeforeAPodIsEnded(t *testing.T) {
	zombies := []events.Admission{{Slice: job, Incarnation: events.Incarnation{ID: "uid-1"}}}
	since := func(b *zombie, at time.Time) {
		b.Change(workload, func(w *incident.Workload) {
			for i := range w.Effects {
				if w.Effects[i].Action == events.ActionRelease {
					w.Effects[i].By = at
				}
			}
		})
	}
	ago := func(b *zombie, d time.Duration) time.Time { return b.Clock.Now().Add(-d) }
	for name, c := range map[string]struct {
		change   func(b *zombie)
		released int
	}{
		"as it was written":                 {func(*zombie) {}, 1},
		"written six minutes ago":           {func(b *zombie) { since(b, ago(b, incident.TakeOverFor)) }, 1},
		"written less than six minutes ago": {func(b *zombie) { since(b, ago(b, incident.TakeOverFor-time.Second)) }, 0},
		"it says less than six minutes": {func(b *zombie) {
			b.writes(func(l *checkpoint.Lease) { l.Written = ago(b, incident.TakeOverFor-time.Second) })
		}, 0},
		"it says an hour, and was written just now": {func(b *zombie) {
			since(b, b.Clock.Now())
			b.writes(func(l *checkpoint.Lease) { l.Written = ago(b, time.Hour) })
		}, 0},
		"a crew has counted a restart":    {func(b *zombie) { b.writes(func(l *checkpoint.Lease) { l.Attempt++; l.By = "crew" }) }, 0},
		"it names the Job again":          {func(b *zombie) { b.writes(func(l *checkpoint.Lease) { l.Admitted = zombies }) }, 0},
		"another incident has written it": {func(b *zombie) { b.writes(func(l *checkpoint.Lease) { l.Incident = "mixtral-20261112-9" }) }, 0},
		"it does not answer": {func(b *zombie) {
			b.Storage.Inject(buckettest.Fault{Method: buckettest.MethodGet, Status: 503, Times: 100})
		}, 0},
		"it may not be read": {func(b *zombie) {
			b.Storage.Inject(buckettest.Fault{Method: buckettest.MethodGet, Status: 403, Times: 100})
		}, 0},
	} {
		b := toRelease(t)
		b.Want(b.deliver(), fleettest.Handled)
		b.waits()
		c.change(b)
		b.deliver()
		if len(b.cluster.released) != c.released {
			t.Errorf("%s: %d are released, want %d: %+v", name, len(b.cluster.released), c.released, b.Workload(workload).Incident.Timeline)
		}
	}
}

// TestALostAnswerLeavesTheCallInTheRecord: a lease that may have been written counts as called, and is looked at again.
func TestALostAnswerLeavesTheCallInTheRecord(t *testing.T) {
	b := toRelease(t)
	b.Storage.Inject(buckettest.Fault{Method: buckettest.MethodInsert, LoseAnswer: true})
	b.Storage.OnChange(func(string, string, bool) {
		b.Storage.Inject(buckettest.Fault{Method: buckettest.MethodGet, Status: 503, Times: 1000})
	})
	b.Want(b.deliver(), fleettest.Handled)
	i := slices.IndexFunc(b.Workload(workload).Incident.Calls, func(c incident.Call) bool { return c.Method == "storage.objects.create" })
	if calls := b.Workload(workload).Incident.Calls; i < 0 || calls[i].NotMade {
		t.Errorf("the lease was written, and the record says %+v", calls)
	}
}

// TestARefusedReleaseIsEvidence: the brake gets its slot back, and what passes is tried again.
func TestARefusedReleaseIsEvidence(t *testing.T) {
	for class, again := range map[incident.FailureClass]bool{incident.Transient: true, incident.Busy: true, incident.NotInState: false, incident.Permission: false} {
		b := toRelease(t)
		b.Want(b.deliver(), fleettest.Handled)
		b.waits()
		before := b.slots()
		b.cluster.refuses = &provider.Error{Call: "release", Class: class, Message: "no"}
		b.Want(b.deliver(), fleettest.Handled)
		if taken := b.slots() > before; taken != (class == incident.Transient) {
			t.Errorf("%s: the slot is taken: %t", class, taken)
		}
		b.cluster.refuses = nil
		b.look()
		b.look()
		all := fleettest.All(t, b.Bench, events.DecodeRecoveryRequested)
		if (len(all) > 0) != again || b.Workload(workload).Incident == nil {
			t.Errorf("%s: %+v is asked for", class, all)
		}
	}
}

// slots is how many slots of the brake are taken in this hour.
func (b *zombie) slots() int {
	b.T.Helper()
	n, _, err := b.Ledger.Slots(b.T.Context(), fleettest.Project, scope, b.Clock.Now())
	b.Must(err)
	return n
}

// said is the last line of the record.
func (b *zombie) said() incident.Line {
	in := b.Workload(workload).Incident
	return in.Timeline[len(in.Timeline)-1]
}

// pods are the calls about single Pods in the record, each with what became of it.
func (b *zombie) pods() (all []string) {
	for _, c := range b.Workload(workload).Incident.Calls {
		const pods = "projects/" + fleettest.Project + "/locations/us-east5/clusters/trainers/k8s/namespaces/default/pods/"
		name, is := strings.CutPrefix(c.Resource, pods)
		if !is || c.Method != "io.k8s.core.v1.pods.delete" || c.Answered.IsZero() {
			continue
		}
		if c.NotMade {
			name += " not made"
		}
		all = append(all, strings.TrimSpace(name+" "+string(c.Code)))
	}
	return all
}

// TestWhatWasEndedIsTold: of two Pods the one that was, and the slot stays taken for it. One that only counts as failed was ended.
func TestWhatWasEndedIsTold(t *testing.T) {
	const first, second = "mixtral-0-x (UID p-1) on n1", "mixtral-1-x (UID p-2) on n2"
	denied := &provider.Error{Call: "release", Class: incident.Permission, Message: "no"}
	for name, c := range map[string]struct {
		after   int
		refuses error
		lease   func(l *checkpoint.Lease)
		want    string
		calls   []string
		taken   bool
	}{
		"both":      {2, nil, nil, "ended unheard: " + first + ", " + second, []string{"mixtral-0-x", "mixtral-1-x"}, true},
		"the first": {1, denied, nil, "ended unheard: " + first, []string{"mixtral-0-x", "mixtral-1-x permission"}, true},
		"none":      {0, denied, nil, "nothing of mixtral was ended", []string{"mixtral-0-x permission", "mixtral-1-x not made permission"}, false},
		"both, and one stays": {
			1, &provider.PartError{Left: denied}, nil, "ended unheard: " + first + ", " + second + ", which stays in the listings: release: no (permission)",
			[]string{"mixtral-0-x", "mixtral-1-x"},
			true,
		},
		"none by another lease": {
			2, nil, func(l *checkpoint.Lease) { l.By = "crew" }, "nothing of mixtral was ended",
			[]string{"mixtral-0-x not made not_released", "mixtral-1-x not made not_released"},
			false,
		},
	} {
		b := toRelease(t)
		b.Want(b.deliver(), fleettest.Handled)
		b.waits()
		hung := b.cluster.slice.Hung[0]
		hung.Name, hung.ID, hung.Machine = "mixtral-1-x", "p-2", "n2"
		b.cluster.slice.Hung = append(b.cluster.slice.Hung, hung)
		before := b.slots()
		b.cluster.after, b.cluster.refuses = c.after, c.refuses
		if c.lease != nil {
			b.writes(c.lease)
		}
		b.Want(b.deliver(), fleettest.Handled)
		if d := cmp.Diff(c.calls, b.pods()); d != "" {
			t.Errorf("%s: (-want +recorded):\n%s", name, d)
		}
		if said := b.said(); said.Text != c.want {
			t.Errorf("%s: the record says %+v", name, said)
		}
		if taken := b.slots() > before; taken != c.taken {
			t.Errorf("%s: the slot is taken: %t", name, taken)
		}
	}
}

// TestWhatIsEndedIsToldBeforeIt: a reading may come before the answer, and where the function ends there, no answer comes.
func TestWhatIsEndedIsToldBeforeIt(t *testing.T) {
	b := toRelease(t)
	b.Want(b.deliver(), fleettest.Handled)
	b.waits()
	b.cluster.hears = func() {
		if said := b.said(); said.Text != "about to end unheard: mixtral-0-x (UID p-1) on n1" {
			t.Errorf("before its end the record says %+v", said)
		}
		b.cluster.slice.Hung = nil
		b.look()
	}
	b.Want(b.deliver(), fleettest.Handled)
	told := 0
	for _, l := range b.Workload(workload).Incident.Timeline {
		if l.Text == "about to end unheard: mixtral-0-x (UID p-1) on n1" {
			told++
		}
	}
	b.Want(told, 1)
}

// TestAForbiddenReleaseIsTold: the policy has been tightened since the lease was written.
func TestAForbiddenReleaseIsTold(t *testing.T) {
	b := toRelease(t)
	b.Want(b.deliver(), fleettest.Handled)
	b.waits()
	b.Policies.Ceiling.Release = policy.No
	b.deliver()
	if said := b.said(); said.Text != "Job mixtral is left to hang" || said.Reason == "" || said.Code != incident.CodePolicyNo {
		t.Errorf("the record says %+v", said)
	}
	for _, e := range b.Workload(workload).Effects {
		if e.Action == events.ActionRelease && (e.LastFailure == "" || e.LastCode != incident.CodePolicyNo) {
			t.Errorf("the release is %+v", e)
		}
	}
}
