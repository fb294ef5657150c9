//go:build unix

package crew

import (
	"context"
	"errors"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/shared/checkpoint"
)

// unreadable is a storage that nothing can be read of.
type unreadable struct{ checkpoint.Store }

func (unreadable) Get(context.Context, string) (checkpoint.Object, error) {
	return checkpoint.Object{}, errors.New("denied")
}

// stuck is a storage that does not answer, and does not give up either, as a folder that is mounted from elsewhere may.
type stuck struct {
	checkpoint.Store
	asked chan struct{}
}

func (s stuck) Get(context.Context, string) (checkpoint.Object, error) {
	s.asked <- struct{}{}
	select {}
}

// TestAStorageThatDoesNotAnswerIsAskedOnce: each question would keep a thread for as long as it hangs.
func TestAStorageThatDoesNotAnswerIsAskedOnce(t *testing.T) {
	c := crewOf(t, 1)
	asked := make(chan struct{}, 100)
	c.Store = stuck{c.Store, asked}
	c.board.Store = c.Store
	c.leader.Stage = agree.Training
	c.lease.exists = true
	c.lease.Lease = checkpoint.Lease{Attempt: 1, Admitted: []events.Admission{c.admission()}, By: by}
	now := time.Now()
	for range 10 {
		now = now.Add(time.Hour)
		c.readLease()
		c.readRequest()
		c.carry(now, agree.Want{})
	}
	for range 3 { // the lease, the request, the sign of life
		<-asked
	}
	c.readRequest()
	if n := len(asked); n != 0 || len(c.running) != 2 {
		t.Errorf("%d more questions, %v", n, c.running)
	}
}

// TestWhetherARequestCouldBeReadIsKnown: where the bucket cannot be read, a request that is left there is not seen, and only
// the crew knows that.
func TestWhetherARequestCouldBeReadIsKnown(t *testing.T) {
	now := time.Date(2026, 11, 12, 2, 14, 1, 0, time.UTC)
	files := checkpoint.NewFiles("/", time.Now)
	dir := "file://" + t.TempDir()
	for name, c := range map[string]struct {
		store checkpoint.Store
		want  time.Time
	}{
		"there is none":     {files, now},
		"it cannot be read": {unreadable{files}, time.Time{}},
	} {
		c1 := &crew{
			Options: Options{Store: c.store, Directory: dir, Say: func(string, ...any) {}},
			ctx:     t.Context(), do: make(chan func(), 1), clock: func() time.Time { return now }, seen: map[string]string{}, running: map[string]bool{},
		}
		c1.readRequest()
		(<-c1.do)()
		if !c1.requestRead.Equal(c.want) {
			t.Errorf("%s: read at %v, want %v", name, c1.requestRead, c.want)
		}
	}
}
