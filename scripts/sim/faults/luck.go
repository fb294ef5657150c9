package faults

import (
	"time"

	"pitstop.internal/scripts/sim/world"
)

// luck draws what befalls one delivery of a message, and the calls that its handling makes.
type luck struct {
	chaos *Chaos
	dice  Dice
	// made is how often the handling has made each call.
	made turns
}

// luck is that of a message, from its publication on.
func (c *Chaos) luck(m world.Message) world.Luck {
	return c.of(c.published.next(c.dice.Of("message", m.Topic, identity(m))))
}

func (c *Chaos) of(d Dice) *luck { return &luck{chaos: c, dice: d, made: turns{}} }

// as is that of another delivery of the message, which has dice of its own.
func (l *luck) as(delivery string) *luck { return l.chaos.of(l.dice.Of(delivery)) }

// Latency implements Luck. Messages overtake each other.
func (l *luck) Latency(m world.Message, usual time.Duration) time.Duration {
	if l.chaos.happens(l.dice.Of("late"), l.chaos.Delayed, "message %s on %s comes late", m.ID, m.Topic) {
		return l.dice.Of("how late").between(time.Second, 15*time.Minute)
	}
	return l.dice.Of("latency").between(usual/4, 2*usual)
}

// Twin implements Luck.
func (l *luck) Twin(m world.Message) (world.Luck, bool) {
	return l.as("twin"), l.chaos.happens(l.dice.Of("twice"), l.chaos.Twice, "message %s on %s comes twice", m.ID, m.Topic)
}

// Again implements Luck.
func (l *luck) Again(m world.Message) (world.Luck, time.Duration, bool) {
	again := l.chaos.happens(l.dice.Of("again"), l.chaos.Faults.Again, "message %s on %s comes again though it was acknowledged", m.ID, m.Topic)
	return l.as("next"), l.dice.Of("when again").between(time.Second, time.Hour), again
}

// Next implements Luck.
func (l *luck) Next() world.Luck { return l.as("next") }

// Redriven implements Luck: somebody redrives the dead letters, days later.
func (l *luck) Redriven() (world.Luck, time.Duration) {
	return l.as("redriven"), l.dice.Of("when redriven").between(24*time.Hour, 72*time.Hour)
}

// call are the dice of a call that a handling makes, which is named by the words. How often it has made the same call does
// not depend on its other calls. A simulated handling makes one call at a time: patrol has a goroutine for each project, and
// the simulated deployment watches one.
func call(inst *world.Instance, words ...string) Dice {
	l, ok := inst.Luck.(*luck)
	if !ok {
		l = (&Chaos{}).of(0) // nobody published what it handles
		inst.Luck = l
	}
	return l.made.next(l.dice.Of(words...))
}

// identity is the key for drawing the faults of a message: the ID of an event or a log entry, else the time, as for a tick.
// The broker's own number is unfit, because it depends on earlier messages.
func identity(m world.Message) string {
	if id := m.Attributes["ce-id"]; id != "" {
		return id
	}
	if e, err := m.Read(); err == nil && e.ID != "" {
		return e.ID
	}
	return m.Published.UTC().Format(time.RFC3339Nano)
}
