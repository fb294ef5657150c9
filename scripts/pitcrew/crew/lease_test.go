//go:build unix

package crew

import (
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/shared/checkpoint"
)

// crewOf is a crew of slice llama over a folder, without a loop.
func crewOf(t *testing.T, slices int) *crew {
	t.Helper()
	m := metadata.Machine{Project: "demo", Zone: "us-west4-a", Node: "llama", Host: "t1v-n-bbbbbbbb-w-0", Workers: 1, Slices: slices}
	c := made(t.Context(), Options{
		Machine: m, Workload: "demo/llama", Directory: "file://" + t.TempDir(), Store: checkpoint.NewFiles("/", time.Now),
		Times: DefaultTimes(), Say: func(string, ...any) {}, Note: func(string, ...any) {},
	})
	c.life, c.leader = Life(m), &agree.Leader{}
	return c
}

// TestALeaseThatIsTakenOverNamesNobodyElse: the other crew may only have been cut off from the bucket. Were it still named
// when it reads the lease again, it would train beside this one.
func TestALeaseThatIsTakenOverNamesNobodyElse(t *testing.T) {
	other := events.Admission{Slice: "other", Incarnation: events.Incarnation{Zone: "us-west4-b"}, Workers: "t1v-n-aaaaaaaa"}
	for _, c := range []struct {
		name   string
		slices int
		epoch  int64
		want   []string
	}{
		{"one slice", 1, 0, []string{"llama"}},
		{"a Multislice, whose other slices stay", 2, 0, []string{"llama", "other"}},
		{"Pitstop's lease, which says what belongs together", 1, 3, []string{"llama", "other"}},
	} {
		crew := crewOf(t, c.slices)
		crew.Booted = time.Now()
		l := checkpoint.Lease{Workload: "demo/llama", Epoch: c.epoch, Attempt: 3, Admitted: []events.Admission{other}, Written: time.Now(), By: by}
		if c.epoch > 0 {
			former := events.Incarnation{Zone: "us-west4-a", Created: crew.Booted.Add(-time.Hour)}
			l.Admitted = append(l.Admitted, events.Admission{Slice: "llama", Incarnation: former, Workers: "t1v-n-cccccccc"})
		}
		if err := checkpoint.WriteLease(t.Context(), crew.Store, crew.Directory, l); err != nil {
			t.Fatal(err)
		}
		if _, err := crew.write(t.Context(), draft{attempt: 4, takeOver: true, ready: []events.Admission{crew.admission()}}); err != nil {
			t.Fatal(err)
		}
		l, _, err := checkpoint.ReadLease(t.Context(), crew.Store, crew.Directory)
		var named []string
		for _, a := range l.Admitted {
			named = append(named, a.Slice)
		}
		if err != nil || l.Attempt != 4 || !slices.Equal(named, c.want) {
			t.Errorf("%s: %+v, %v", c.name, l, err)
		}
	}
}

// TestWhoMeansToTrainGivesASignOfLife: another crew takes a lease over when its owner gives no sign of life, and a back-off may be
// longer than it waits.
func TestWhoMeansToTrainGivesASignOfLife(t *testing.T) {
	for _, c := range []struct {
		stage  agree.Stage
		slices int
		rival  bool
		beats  bool
	}{
		{stage: agree.Pausing, slices: 1, beats: true},
		{stage: agree.Gathering, slices: 1, beats: true},
		{stage: agree.Admitting, slices: 1, beats: true},
		{stage: agree.Asking, slices: 1}, // it has given up
		{stage: agree.Waiting, slices: 1},
		{stage: agree.Pausing, slices: 1, rival: true}, // the lease names another
		{stage: agree.Admitting, slices: 2},            // it waits for the new life of another slice, which has to take the lease over
	} {
		crew := crewOf(t, c.slices)
		crew.leader.Stage = c.stage
		crew.lease.exists = true
		crew.lease.Lease = checkpoint.Lease{Attempt: 1, Admitted: []events.Admission{crew.admission()}, By: by}
		if c.rival {
			crew.lease.Admitted[0].Workers = "t1v-n-aaaaaaaa"
		}
		crew.carry(time.Now(), agree.Want{})
		if _, due := crew.next["beat"]; due {
			(<-crew.do)()
		}
		pulse, err := crew.board.Pulse(t.Context())
		if err != nil || (pulse.Generation != 0) != c.beats {
			t.Errorf("%s of %d slices: %+v, %v", c.stage, c.slices, pulse, err)
		}
	}
}

// TestASignOfLifeIsGivenMoreOftenThanItIsMissed, whatever the flags say.
func TestASignOfLifeIsGivenMoreOftenThanItIsMissed(t *testing.T) {
	for _, unread := range []time.Duration{DefaultTimes().Unread, time.Minute, 5 * time.Second} {
		crew := crewOf(t, 1)
		crew.Times.Unread = unread // --lease-take-over is longer
		crew.leader.Stage = agree.Training
		crew.lease.exists = true
		crew.lease.Lease = checkpoint.Lease{Attempt: 1, Admitted: []events.Admission{crew.admission()}, By: by}
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		crew.carry(now, agree.Want{})
		if every := crew.next["beat"].Sub(now); every <= 0 || every > unread/3 {
			t.Errorf("every %v, and it is missed after %v", every, unread)
		}
		(<-crew.do)()
	}
}

// TestANewLifeOfASliceWaitsAsLongAsTheLastOneMayTrain: the last one objects as long as it can, and ends when it cannot.
func TestANewLifeOfASliceWaitsAsLongAsTheLastOneMayTrain(t *testing.T) {
	admission := func(slice, life string) events.Admission {
		return events.Admission{Slice: slice, Incarnation: events.Incarnation{Zone: "us-west4-a"}, Workers: life}
	}
	type look struct {
		life  string
		after time.Duration
	}
	often := func(n int, life string) (all []look) {
		for range n {
			all = append(all, look{life, 2 * time.Second})
		}
		return all
	}
	most := int(DefaultTimes().TakeOver / (2 * time.Second))
	for name, c := range map[string]struct {
		epoch           int64
		slice           int // whose place it is
		looks           []look
		ready           int
		replaced, claim bool
	}{
		"the one that the lease names":             {slice: 1, looks: often(most+9, "old"), ready: 2},
		"a new one":                                {slice: 1, looks: often(most, "new"), ready: 1},
		"a new one, and nothing of the last":       {slice: 1, looks: often(most+1, "new"), ready: 2, replaced: true},
		"the last one objected":                    {slice: 1, looks: slices.Concat(often(most, "new"), often(1, "old"), often(most, "new")), ready: 1},
		"the last one is back":                     {slice: 1, looks: slices.Concat(often(most+1, "new"), often(1, "old")), ready: 2},
		"a newer one":                              {slice: 1, looks: slices.Concat(often(most, "new"), often(1, "newer")), ready: 1},
		"nobody looked meanwhile":                  {slice: 1, looks: []look{{"new", time.Second}, {"new", time.Hour}}, ready: 1},
		"nobody looked since it was known to wait": {slice: 1, looks: slices.Concat(often(most+1, "new"), []look{{"new", time.Hour}}), ready: 2, replaced: true},
		"Pitstop's lease":                          {slice: 1, epoch: 3, looks: often(most+1, "new"), ready: 2},
		"this one's own":                           {slice: 0, looks: often(most+1, "new"), ready: 1, claim: true},
	} {
		crew := crewOf(t, 2)
		lives := []string{crew.life, "old"}
		crew.lease.exists = true
		crew.lease.Lease = checkpoint.Lease{Epoch: c.epoch, Attempt: 1, Admitted: []events.Admission{admission("llama", lives[0]), admission("other", lives[1])}, By: by}
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		var ready map[int]events.Admission
		for _, l := range c.looks {
			now = now.Add(l.after)
			lives[c.slice] = l.life
			ready = crew.claims(now, map[int]events.Admission{0: admission("llama", lives[0]), 1: admission("other", lives[1])})
		}
		if len(ready) != c.ready || (len(crew.out.replaced) > 0) != c.replaced || crew.out.claimed != c.claim {
			t.Errorf("%s: %d are ready, %v are replaced, claimed %v", name, len(ready), crew.out.replaced, crew.out.claimed)
		}
	}
}

// TestATakeOverIsDecidedOnTheLeaseThatItReplaces: the crew decided to take over a lease that named the life before it, in its zone (attempt 9 by own restarts). Before its write
// reads the lease again, Pitstop has admitted training to another zone, at a lower attempt: it had not heard of the own restarts.
func TestATakeOverIsDecidedOnTheLeaseThatItReplaces(t *testing.T) {
	c := crewOf(t, 1)
	c.Booted = time.Now()
	before := events.Admission{Slice: "llama", Incarnation: events.Incarnation{Zone: "us-west4-a", ID: "1", Created: c.Booted.Add(-time.Hour)}, Workers: "t1v-n-aaaaaaaa"}
	seen := checkpoint.Lease{Schema: 1, Workload: "demo/llama", Epoch: 5, Attempt: 9, Admitted: []events.Admission{before}, Written: time.Now(), By: by}
	if !c.succeeds(seen) {
		t.Fatal("it may not put itself into its place")
	}
	far := before
	far.Incarnation = events.Incarnation{Zone: "us-west4-b", ID: "2", Created: c.Booted.Add(-time.Minute)}
	far.Workers = "t1v-n-cccccccc"
	now := checkpoint.Lease{Workload: "demo/llama", Epoch: 9, Attempt: 6, Admitted: []events.Admission{far}, Written: time.Now(), By: "pitstop"}
	if err := checkpoint.WriteLease(t.Context(), c.Store, c.Directory, now); err != nil {
		t.Fatal(err)
	}
	if c.succeeds(now) {
		t.Fatal("it must not put itself into the place of a life in another zone")
	}
	_, err := c.write(t.Context(), draft{attempt: seen.Attempt + 1, takeOver: true, ready: []events.Admission{c.admission()}})
	l, _, rerr := checkpoint.ReadLease(t.Context(), c.Store, c.Directory)
	if rerr != nil || l.By != "pitstop" {
		t.Errorf("%v, %v: the lease of Pitstop for us-west4-b is overwritten: %+v", err, rerr, l)
	}
}

// TestAJobsUIDTellsItsLivesApart: a Job that is made again has the old names, on a machine that may have started at any time.
func TestAJobsUIDTellsItsLivesApart(t *testing.T) {
	c := crewOf(t, 1)
	c.Machine.Pod = metadata.Pod{Location: "us-east5", Cluster: "research", Namespace: "teams", Name: "llama-0", Job: "llama", JobUID: "77aa"}
	c.life, c.Booted = Life(c.Machine), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const scope = "us-east5/research/teams"
	for name, x := range map[string]struct {
		names  events.Admission
		admits bool
	}{
		"this life, by a crew":      {c.admission(), true},
		"this life, by Pitstop":     {events.Admission{Slice: "llama", Incarnation: events.Incarnation{Zone: scope, ID: "77aa"}}, true},
		"a former life, by a crew":  {events.Admission{Slice: "llama", Incarnation: events.Incarnation{Zone: scope, ID: "5d1f"}, Workers: "5d1f"}, false},
		"the same by Pitstop":       {events.Admission{Slice: "llama", Incarnation: events.Incarnation{Zone: scope, ID: "5d1f", Created: c.Booted.Add(-time.Hour)}}, false},
		"a Job elsewhere":           {events.Admission{Slice: "llama", Incarnation: events.Incarnation{Zone: "us-east5/research/others", ID: "77aa"}}, false},
		"a TPU VM of the same name": {events.Admission{Slice: "llama", Incarnation: events.Incarnation{Zone: "us-east5-a", Created: c.Booted.Add(-time.Hour)}}, false},
	} {
		l := checkpoint.Lease{Epoch: 4, Attempt: 2, Admitted: []events.Admission{x.names}}
		if got := c.admits(l); got != x.admits {
			t.Errorf("%s: admitted %t, want %t", name, got, x.admits)
		}
		if c.succeeds(l) {
			t.Errorf("%s: it puts itself in the place of what Pitstop's lease names", name)
		}
	}
}
