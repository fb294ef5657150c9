package view

import (
	"fmt"
	"time"

	"pitstop.internal/events"
)

// Queue is what waits for the function that reads a topic.
type Queue struct {
	Topic string `json:"topic"`
	// Oldest is when the oldest message was published that still waits, zero for none. DeadLetters is how many messages were given up; they
	// lie ready to be sent again.
	Oldest      time.Time `json:"oldest,omitzero"`
	DeadLetters int       `json:"dead_letters,omitzero"`
}

// waitsLong is from when a function that keeps a message waiting does not answer. A call takes a minute at most.
const waitsLong = 5 * time.Minute

// lines tell what is wrong with a queue that was read at a time.
func (q Queue) lines(read, now time.Time) (all []SightLine) {
	if !q.Oldest.IsZero() && read.Sub(q.Oldest) >= waitsLong {
		all = append(all, SightLine{"STUCK", fmt.Sprintf("the function that reads %s does not answer; its oldest message has waited %s", q.Topic, events.Span(now.Sub(q.Oldest))), "see that function's log"})
	}
	if q.DeadLetters > 0 {
		all = append(all, SightLine{
			"NOT HANDLED", fmt.Sprintf("%d of the messages on %s failed again and again, and lie aside", q.DeadLetters, q.Topic),
			"see its function's log, remove the cause, then pitstop redrive " + q.Topic,
		})
	}
	return all
}
