package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"
)

// demoKey is a key of the demo's terminal.
type demoKey struct {
	key  byte
	does string
	do   func(ctx context.Context, t *teller, slice string) error
}

// demoKeys are the keys that break something. They are about the slice that is chosen.
var demoKeys = []demoKey{
	{'p', "preempt", func(ctx context.Context, t *teller, slice string) error { return t.demo.Preempt(ctx, slice) }},
	{'b', "break a host", func(ctx context.Context, t *teller, slice string) error {
		return t.demo.HostError(ctx, slice, 15*time.Minute)
	}},
	{'m', "maintenance in 2 h", func(ctx context.Context, t *teller, slice string) error {
		return t.demo.Maintain(ctx, slice, 2*time.Hour)
	}},
	{'h', "hang", func(ctx context.Context, t *teller, slice string) error { return t.demo.Hang(ctx, slice) }},
	{'c', "crash", func(ctx context.Context, t *teller, slice string) error { return t.demo.Crash(ctx, slice, 1, 1) }},
	{'d', "delete as its owner", func(ctx context.Context, t *teller, slice string) error { return t.demo.Delete(ctx, slice) }},
	{'s', "no room in its zone", func(ctx context.Context, t *teller, slice string) error {
		return t.demo.Stockout(ctx, t.demo.Zone(slice), 0)
	}},
	{'r', "room again", func(ctx context.Context, t *teller, slice string) error {
		return t.demo.Room(ctx, t.demo.Zone(slice))
	}},
	{'o', "hold Pub/Sub", func(ctx context.Context, t *teller, _ string) error {
		return t.demo.Hold(ctx, "pubsub", 10*time.Minute)
	}},
	{'k', "kill recreate", func(ctx context.Context, t *teller, _ string) error {
		return t.demo.Kill(ctx, "recreate", 5*time.Minute)
	}},
}

// The keys that a terminal in raw mode hands on as characters.
const (
	keyInterrupt = 3
	keyEnd       = 4
	keyEscape    = 27
)

// rawTerminal is a terminal in raw mode, which needs a carriage return before each end of a line.
type rawTerminal struct{ *os.File }

// Write implements io.Writer.
func (r rawTerminal) Write(p []byte) (int, error) {
	if _, err := r.File.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// listenToKeys has keys break something where the input and the output are a terminal. The function that it returns gives the terminal
// back as it was.
func listenToKeys(ctx context.Context, t *teller, in io.Reader, out io.Writer, end func()) (restore func(), err error) {
	keyboard, s := file(in), screenOf(out)
	if keyboard == nil || s == nil || !term.IsTerminal(int(keyboard.Fd())) || !term.IsTerminal(int(file(out).Fd())) {
		return func() {}, nil
	}
	if !inForeground(keyboard) {
		return func() {}, nil // the keys are for somebody else, and the system stops a background job that changes its terminal
	}
	before, err := term.MakeRaw(int(keyboard.Fd()))
	if err != nil {
		return func() {}, err
	}
	plain := s.out
	s.out = rawTerminal{file(out)}
	k := &keyboardOf{t: t, ctx: ctx, end: end}
	t.say(k.help()...)
	go k.read(keyboard)
	return func() {
		_ = term.Restore(int(keyboard.Fd()), before) //nolint:errcheck // there is nobody else to tell
		t.mu.Lock()
		defer t.mu.Unlock()
		s.out = plain
	}, nil
}

func screenOf(out io.Writer) *screen {
	s, _ := out.(*screen)
	return s
}

// keyboardOf acts on the keys of a terminal.
type keyboardOf struct {
	t   *teller
	ctx context.Context //nolint:containedctx // it ends with the demo
	end func()
	// chosen is the place in the fleet of the slice that the keys are about.
	chosen int
	// sequence is what has come of an escape sequence, such as an arrow key sends.
	sequence string
}

// read acts on each key until the demo ends. Somebody who types sends one byte at a time, so that more at once are no keys: a text was
// pasted, or an arrow was pressed. Only what ends the demo counts there, too.
func (k *keyboardOf) read(keys io.Reader) {
	buffer := make([]byte, 256)
	for {
		n, err := keys.Read(buffer)
		if bytes.ContainsFunc(buffer[:n], ends) || n == 1 && buffer[0] == 'q' && k.sequence == "" || errors.Is(err, io.EOF) {
			k.end()
			return
		}
		if err != nil {
			return
		}
		if n == 1 && !k.continues(buffer[0]) {
			k.press(buffer[0])
		}
	}
}

// ends says which characters end the demo wherever they come.
func ends(r rune) bool { return r == keyInterrupt || r == keyEnd }

// continues reports whether a byte belongs to an escape sequence, which some terminals send byte by byte.
func (k *keyboardOf) continues(b byte) bool {
	switch {
	case b == keyEscape:
		k.sequence = string(b)
	case k.sequence == "\x1b" && (b == '[' || b == 'O'):
		k.sequence += string(b)
	case len(k.sequence) > 1:
		if b >= '@' && b <= '~' { // the last byte
			k.sequence = ""
		}
	default:
		k.sequence = ""
		return false
	}
	return true
}

// press acts on a key.
func (k *keyboardOf) press(key byte) {
	fleet := k.t.demo.Fleet
	slice := fleet[k.chosen]
	for _, one := range demoKeys {
		if one.key == key {
			if err := one.do(k.ctx, k.t, slice.Name); err != nil && k.ctx.Err() == nil {
				k.t.say(k.t.p.paint(yellow, "  "+err.Error()))
			}
			return
		}
	}
	switch n := int(key) - '1'; {
	case n >= 0 && n < len(fleet):
		k.chosen = n
	case key == '\t':
		k.chosen = (k.chosen + 1) % len(fleet)
	case key == '?':
		k.t.say(k.help()...)
		return
	default:
		k.t.say(k.t.p.paint(dim, "  no such key; ? shows them"))
		return
	}
	k.t.say(k.t.p.paint(dim, "  the keys are about ") + k.t.p.paint(bold, fleet[k.chosen].Name) + k.t.p.paint(dim, " now"))
}

// whole is a text that is not broken at the end of a line.
func whole(s string) string { return strings.ReplaceAll(s, " ", "\u00a0") }

// help says what the keys do.
func (k *keyboardOf) help() []string {
	p := k.t.p
	var acts, slices []string
	for _, one := range demoKeys {
		acts = append(acts, p.paint(bold, string(one.key))+whole(" "+one.does))
	}
	for i, c := range k.t.demo.Fleet {
		name := c.Name
		if i == k.chosen {
			name = p.paint(bold, name)
		}
		slices = append(slices, p.paint(bold, strconv.Itoa(i+1))+whole(" ")+name)
	}
	return []string{
		p.paint(bold, "Or press a key here") + " (? shows them again, q ends the demo):",
		"  " + strings.Join(acts, whole(" ·")+" "),
		"  The slice that they are about: " + strings.Join(slices, whole(" ·")+" "), "",
	}
}
