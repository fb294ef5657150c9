package patrol_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/functions/patrol"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
)

// canaries records the written entries, and may refuse one.
type canaries struct {
	written []string
	err     error
}

func (c *canaries) WriteCanary(_ context.Context, project, id string, _ time.Time) error {
	if c.err != nil {
		return c.err
	}
	c.written = append(c.written, project+" "+id)
	return nil
}

// log keeps the messages that were logged.
type log struct{ strings.Builder }

func (l *log) missing() int { return strings.Count(l.String(), "canary missing") }

// watching is the bench of a patrol that writes canaries.
func watching(t *testing.T) (*bench, *canaries, *log) {
	t.Helper()
	b, c, l := newBench(t), &canaries{}, &log{}
	b.Fleet.Log = slog.New(slog.NewTextHandler(l, nil))
	b.handle = patrol.New(patrol.Deps{
		Fleet: b.Fleet, Provider: b.Cloud, Publisher: b.Sender, Canary: c, Project: fleettest.Project, Accounts: events.Accounts{Ours: []string{fleettest.Us}}, Sleep: b.Sleep,
	})
	return b, c, l
}

// comeBack has the last canary come back.
func comeBack(b *bench, c *canaries) {
	b.T.Helper()
	_, id, _ := strings.Cut(c.written[len(c.written)-1], " ")
	last, err := b.Ledger.Canary(b.T.Context(), fleettest.Project)
	b.Must(err)
	_, err = b.Ledger.CanaryReturned(b.T.Context(), fleettest.Project, id, ledger.Way{Written: last.Written}, b.Clock.Now())
	b.Must(err)
}

func TestACanaryIsWrittenOnceADay(t *testing.T) {
	b, c, l := watching(t)
	b.minutes(1)
	b.Want(len(c.written), 1)
	comeBack(b, c)
	b.minutes(23 * 60)
	b.Want(len(c.written), 1)
	b.minutes(60 + 15)
	b.Want(len(c.written), 2)
	comeBack(b, c)
	b.minutes(60)
	b.Want(l.missing(), 0)
}

func TestACanaryThatDoesNotComeBackIsToldUntilOneDoes(t *testing.T) {
	b, c, l := watching(t)
	b.minutes(31)
	b.Want(l.missing(), 0)
	b.minutes(30)
	b.Want(l.missing(), 2)
	comeBack(b, c)
	b.minutes(60)
	b.Want(l.missing(), 2)
}

func TestACanaryThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	b, c, _ := watching(t)
	c.err = errors.New("no right to")
	b.Clock.Advance(time.Minute)
	b.Want(b.tick(), fleettest.Rejected)
	c.err = nil
	b.minutes(15)
	b.Want(len(c.written), 1)
}

// TestACanaryThatCannotBeWrittenIsMissing: an alert that waits for written entries would never fire. A refusal that is over
// soon does not count.
func TestACanaryThatCannotBeWrittenIsMissing(t *testing.T) {
	b, c, l := watching(t)
	c.err = errors.New("no right to")
	b.Clock.Advance(time.Minute)
	b.Want(b.tick(), fleettest.Rejected)
	b.Want(l.missing(), 1) // there never was one
	c.err = nil
	b.minutes(15)
	comeBack(b, c)
	b.minutes(24*60 - 20)
	b.Want(len(c.written), 1)
	c.err = errors.New("away")
	for range 45 {
		b.Clock.Advance(time.Minute)
		b.tick()
	}
	b.Want(l.missing(), 1)
	for range 30 {
		b.Clock.Advance(time.Minute)
		b.tick()
	}
	b.Want(l.missing() > 1, true)
	c.err = nil
	told := l.missing()
	b.minutes(15)
	b.Want(len(c.written), 2)
	b.Want(l.missing(), told)
}

// TestASweepWritesTheSettingsDown: the operator of a deployment reads its switches there.
func TestASweepWritesTheSettingsDown(t *testing.T) {
	b := newBench(t)
	want := ledger.Settings{Policy: policy.Config{URI: "gs://ops/policy.yaml", Allow: "recreate"}, Watched: []string{fleettest.Project}}
	b.handle = patrol.New(patrol.Deps{
		Fleet: b.Fleet, Provider: b.Cloud, Publisher: b.Sender, Project: fleettest.Project, Accounts: events.Accounts{Ours: []string{fleettest.Us}}, Settings: &want, Sleep: b.Sleep,
	})
	b.minutes(1)
	got, err := b.Ledger.Settings(t.Context())
	b.Must(err)
	b.Want(got, want)
}
