// Package browser drives a headless Chromium by the protocol of its developer tools, so that tests see pages as a person does.
package browser

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/websocket"
)

// ErrMissing says that no Chromium is installed on this machine.
var ErrMissing = errors.New("chromium is not installed")

// answerWithin bounds the wait for one answer, and for the start.
const answerWithin = time.Minute

// Browser is a running Chromium with one page open.
type Browser struct {
	process *exec.Cmd
	folder  string
	socket  *websocket.Conn
	session string

	mu     sync.Mutex
	last   int
	waits  map[int]chan answer
	loaded chan struct{}
	ended  chan struct{}
	seen   Seen
	broken error
}

// Seen is what happened in the page since it was last asked.
type Seen struct {
	// Faults are errors and warnings in its console, and Requests the addresses that it asked for.
	Faults, Requests []string
}

type answer struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Start starts a Chromium, or returns ErrMissing.
func Start(ctx context.Context) (*Browser, error) {
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		return nil, ErrMissing
	}
	folder, err := os.MkdirTemp("", "browser-*")
	if err != nil {
		return nil, err
	}
	b := &Browser{folder: folder, waits: map[int]chan answer{}, loaded: make(chan struct{}, 1), ended: make(chan struct{})}
	if err := b.start(ctx, program); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Browser) start(ctx context.Context, program string) error {
	//nolint:gosec // found in PATH
	b.process = exec.CommandContext(ctx, program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
		"--hide-scrollbars", "--remote-allow-origins=*", "--remote-debugging-port=0", "--user-data-dir="+b.folder, "about:blank")
	said, err := b.process.StderrPipe()
	if err != nil {
		return err
	}
	if err := b.process.Start(); err != nil {
		return err
	}
	address, err := announced(said)
	if err != nil {
		return err
	}
	go func() { _, _ = io.Copy(io.Discard, said) }() //nolint:errcheck // nobody reads it
	if b.socket, err = websocket.Dial(address, "", "http://127.0.0.1"); err != nil {
		return err
	}
	b.socket.MaxPayloadBytes = 64 << 20
	go b.listen()
	var target struct{ TargetID string }
	if err := b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return err
	}
	var attached struct{ SessionID string }
	if err := b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		return err
	}
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		if err := b.call(domain+".enable", nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// announced reads the address of the developer tools.
func announced(said io.Reader) (string, error) {
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if _, address, found := strings.Cut(lines.Text(), "DevTools listening on "); found {
			return address, nil
		}
	}
	return "", errors.Join(errors.New("chromium ended before it listened"), lines.Err())
}

// Close ends it, with all of its processes: none may write into its folder any more.
func (b *Browser) Close() error {
	var faults []error
	if b.socket != nil {
		b.session = ""
		faults = append(faults, b.call("Browser.close", nil, nil))
		<-b.ended
	}
	if b.process != nil && b.process.Process != nil {
		if b.socket == nil {
			faults = append(faults, b.process.Process.Kill())
		}
		faults = append(faults, b.process.Wait())
	}
	return errors.Join(append(faults, os.RemoveAll(b.folder))...)
}

// listen takes answers and events until the socket closes.
func (b *Browser) listen() {
	defer close(b.ended)
	for {
		var a answer
		if err := websocket.JSON.Receive(b.socket, &a); err != nil {
			b.mu.Lock()
			b.broken = fmt.Errorf("chromium has gone: %w", err)
			for _, w := range b.waits {
				close(w)
			}
			b.waits = map[int]chan answer{}
			b.mu.Unlock()
			return
		}
		b.mu.Lock()
		if w := b.waits[a.ID]; a.ID != 0 && w != nil {
			w <- a
			delete(b.waits, a.ID)
		} else {
			b.happened(a)
		}
		b.mu.Unlock()
	}
}

// happened notes an event of the page.
func (b *Browser) happened(a answer) {
	var p struct {
		Type, Text string
		Request    struct{ URL string }
		Entry      struct{ Level, Text, URL string }
		Args       []struct{ Value, Description any }
	}
	if json.Unmarshal(a.Params, &p) != nil {
		return
	}
	switch a.Method {
	case "Page.loadEventFired":
		select {
		case b.loaded <- struct{}{}:
		default:
		}
	case "Network.requestWillBeSent":
		b.seen.Requests = append(b.seen.Requests, p.Request.URL)
	case "Runtime.exceptionThrown":
		b.seen.Faults = append(b.seen.Faults, string(a.Params))
	case "Runtime.consoleAPICalled":
		b.seen.Faults = append(b.seen.Faults, p.Type+": "+fmt.Sprint(p.Args))
	case "Log.entryAdded":
		if p.Entry.Level == "error" || p.Entry.Level == "warning" {
			b.seen.Faults = append(b.seen.Faults, p.Entry.Level+": "+p.Entry.Text+" "+p.Entry.URL)
		}
	}
}

// call calls a method, and waits for its result.
func (b *Browser) call(method string, params, result any) error {
	b.mu.Lock()
	b.last++
	id, w := b.last, make(chan answer, 1)
	b.waits[id] = w
	broken := b.broken
	b.mu.Unlock()
	if broken != nil {
		return broken
	}
	message := map[string]any{"id": id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	if err := websocket.JSON.Send(b.socket, message); err != nil {
		return err
	}
	select {
	case a, open := <-w:
		switch {
		case !open:
			return fmt.Errorf("%s: chromium has gone", method)
		case a.Error != nil:
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		case result != nil:
			return json.Unmarshal(a.Result, result)
		}
		return nil
	case <-time.After(answerWithin):
		return fmt.Errorf("%s: no answer within %s", method, answerWithin)
	}
}

// Screen sets the width of the window, and whether its person prefers dark colours.
func (b *Browser) Screen(width int, dark bool) error {
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	if err := b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}, nil); err != nil {
		return err
	}
	return b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Open opens an address, and waits until it is loaded.
func (b *Browser) Open(address string) error {
	select {
	case <-b.loaded:
	default:
	}
	var opened struct{ ErrorText string }
	if err := b.call("Page.navigate", map[string]any{"url": address}, &opened); err != nil {
		return err
	}
	if opened.ErrorText != "" {
		return fmt.Errorf("open %s: %s", address, opened.ErrorText)
	}
	return b.Loaded()
}

// Loaded waits until the page that was asked for last is loaded.
func (b *Browser) Loaded() error {
	select {
	case <-b.loaded:
		return nil
	case <-time.After(answerWithin):
		return fmt.Errorf("not loaded within %s", answerWithin)
	}
}

// Run runs a script in the page, as a person does in the console, and reads its result; nil for none.
func (b *Browser) Run(script string, result any) error {
	var ran struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	if err := b.call("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true}, &ran); err != nil {
		return err
	}
	switch e := ran.ExceptionDetails; {
	case e != nil:
		return fmt.Errorf("script: %s %s", e.Text, e.Exception.Description)
	case result == nil:
		return nil
	}
	return json.Unmarshal(ran.Result.Value, result)
}

// Picture is the whole page as PNG.
func (b *Browser) Picture() ([]byte, error) {
	var size struct {
		CSSContentSize struct{ Width, Height float64 }
	}
	if err := b.call("Page.getLayoutMetrics", nil, &size); err != nil {
		return nil, err
	}
	var shot struct{ Data string }
	if err := b.call("Page.captureScreenshot", map[string]any{
		"captureBeyondViewport": true, "clip": map[string]any{"x": 0, "y": 0, "width": size.CSSContentSize.Width, "height": size.CSSContentSize.Height, "scale": 1},
	}, &shot); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(shot.Data)
}

// Seen is what happened since it was last asked.
func (b *Browser) Seen() Seen {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.seen
	b.seen = Seen{}
	return s
}
