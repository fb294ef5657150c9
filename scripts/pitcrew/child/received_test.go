//go:build unix

package child

import (
	"strings"
	"testing"
	"time"
)

func TestSignalLines(t *testing.T) {
	for _, c := range []struct {
		line string
		want bool
	}{
		{"W1112 02:14:08.123456 4711 preemption_notifier.cc:89] SIGTERM caught at 2026-11-12T02:14:08.1+00:00", true},
		{"I1112 02:14:08.1 preemption_sync_manager.cc:170] Received preemption notice with death_time 2026-11-12", true},
		{"WARNING:absl:[process=3][thread=MainThread] Reached preemption sync point, step=48213", true},
		{"Training stopped: Job received termination signal (SIGTERM).", true},
		{"Preemption sync point reached at step 48213. Triggering a checkpoint.", true},
		{"sigterm caught at 2026-11-12T02:14:08", false}, // not as it is printed
		{"installed a handler of SIGTERM", false},
		{"completed step: 48213, seconds: 0.634", false},
		{"Preemption sync protocol cancelled by notifier: CANCELLED. This is expected during program shutdown.", false},
		{"", false},
	} {
		if got := tellsOfSignal(nil, []byte(c.line)); got != c.want {
			t.Errorf("%q: %v", c.line, got)
		}
	}
	for _, l := range SignalLines {
		if l.Text == "" || !strings.Contains(l.Source, "/") {
			t.Errorf("%+v", l)
		}
	}
}

// TestTheOutputTellsWhenASignalWasReceived: a line counts wherever the pieces of the output are cut.
func TestTheOutputTellsWhenASignalWasReceived(t *testing.T) {
	line := "before\nW1112 preemption_notifier.cc:89] SIGTERM caught at 2026\nafter\n"
	for cut := range len(line) {
		o := newOutput("", "", "")
		began := time.Now()
		rest := o.take(nil, []byte(line[:cut]))
		o.add(o.take(rest, []byte(line[cut:])))
		if _, at := o.tail(); at.Before(began) || at.After(time.Now()) {
			t.Errorf("cut at %d: %v", cut, at)
		}
	}
	o := newOutput("", "", "")
	o.take(nil, []byte("completed step: 1\n"))
	if _, at := o.tail(); !at.IsZero() {
		t.Errorf("without one: %v", at)
	}
}

// TestASignalLineBeforeABurstIsSeen: one read may bring many more lines than the tail keeps.
func TestASignalLineBeforeABurstIsSeen(t *testing.T) {
	line := "W1112 preemption_notifier.cc:89] SIGTERM caught at 2026\n"
	burst := strings.Repeat("completed step: 1\n", 2*tailLines)
	for cut := range len(line) + 1 {
		o := newOutput("", "", "")
		rest := o.take(nil, []byte(line[:cut]))
		o.add(o.take(rest, []byte(line[cut:]+burst)))
		if _, at := o.tail(); at.IsZero() {
			t.Errorf("cut at %d: not seen", cut)
		}
	}
}

// TestASignalLineIsSeenOnce: a line that grows read by read does not make the signal younger.
func TestASignalLineIsSeenOnce(t *testing.T) {
	o := newOutput("", "", "")
	rest := o.take(nil, []byte("SIGTERM caught at 2026"))
	_, first := o.tail()
	rest = o.take(rest, []byte(", and the line goes on"))
	o.add(rest)
	if _, at := o.tail(); at.IsZero() || !at.Equal(first) {
		t.Errorf("received at %v, then at %v", first, at)
	}
}

func FuzzSignalLines(f *testing.F) {
	for _, l := range SignalLines {
		f.Add("W1112] ", l.Text, "2026", 3)
	}
	f.Fuzz(func(t *testing.T, before, text, after string, cut int) {
		line := before + text + after
		o := newOutput("", "", "")
		cut = min(max(cut, 0), len(line))
		o.add(o.take(o.take(nil, []byte(line[:cut])), []byte(line[cut:])))
		want := false
		for _, l := range SignalLines {
			want = want || strings.Contains(line, l.Text)
		}
		if _, at := o.tail(); at.IsZero() == want {
			t.Errorf("%q cut at %d: %v", line, cut, at)
		}
	})
}
