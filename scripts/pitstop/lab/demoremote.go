package lab

import (
	"bufio"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/scripts/sim/demo"
)

// DemoPlace says where the demo on this machine runs.
type DemoPlace struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	// Process is the demo's process.
	Process int `json:"process"`
}

// DemoFile is the file that says where the demo of this user runs. Nobody else may read it, because it has the token.
func DemoFile() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "pitstop", "demo.json"), nil
}

// errOtherDemo says that a demo runs already.
func errOtherDemo(at DemoPlace) error {
	where, end := "", "Ctrl-C in its terminal"
	if at.URL != "" {
		where = ", at " + at.URL
	}
	if at.Process != 0 { // it may run in the background
		end += fmt.Sprintf(", or kill %d,", at.Process)
	}
	return cli.Usage("a demo is running already%s; %s ends it", where, end)
}

// OnlyDemo makes this the one demo of this user, until the file that it returns is closed. The system closes it for a demo that is killed.
func OnlyDemo(ctx context.Context) (io.Closer, error) {
	name, err := DemoFile()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(name), "demo.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	free, err := lock(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", f.Name(), err), f.Close())
	}
	at, err := demoThatRuns(ctx)
	switch runs := err == nil; {
	case !runs && free:
		return f, nil
	case !runs: // it begins, or ends
		at = DemoPlace{}
	}
	return nil, errors.Join(errOtherDemo(at), f.Close())
}

// NoteDemo writes down where a demo runs. The function that it returns takes the note away.
func NoteDemo(at DemoPlace) (remove func() error, err error) {
	name, err := DemoFile()
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(at)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	draft, err := os.CreateTemp(filepath.Dir(name), "demo-*.json") // which nobody else may read
	if err != nil {
		return nil, err
	}
	_, err = draft.Write(raw)
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), name)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(draft.Name()))
	}
	return func() error {
		if now, err := notedDemo(); err == nil && now != at {
			return nil // it is of another demo
		}
		if err := os.Remove(name); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}, nil
}

// notedDemo is what the file says. A demo that was killed leaves it behind.
func notedDemo() (at DemoPlace, err error) {
	name, err := DemoFile()
	if err != nil {
		return at, err
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return at, err
	}
	return at, json.Unmarshal(raw, &at)
}

// The paths on which a demo listens to this command. All others are those of its functions and of its cloud.
const (
	demoPath  = "/demo/"
	askPath   = demoPath + "here"
	verbPath  = demoPath + "verb"
	demoAlive = 2 * time.Second
)

// errNoDemo says that nothing runs.
func errNoDemo() error {
	return cli.Usage("no demo is running; start one in another terminal: %s demo", CalledAs())
}

// demoThatRuns is where the demo runs. The error says that none does.
func demoThatRuns(ctx context.Context) (DemoPlace, error) {
	at, err := notedDemo()
	if err != nil {
		return DemoPlace{}, errNoDemo()
	}
	ctx, cancel := context.WithTimeout(ctx, demoAlive)
	defer cancel()
	resp, err := at.ask(ctx, askPath, http.NoBody)
	if err != nil {
		return DemoPlace{}, errNoDemo() // it was killed
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
		return DemoPlace{}, errNoDemo() // something else listens there by now
	}
	return at, nil
}

func (at DemoPlace) ask(ctx context.Context, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.URL+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+at.Token)
	return (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
}

// demoCall is a call of a verb in the process of the demo.
type demoCall struct {
	Args   []string `json:"args"`
	Colour bool     `json:"colour"`
}

// demoAnswer is a part of what the verb prints. The last one has its exit code.
type demoAnswer struct {
	Out   string `json:"out,omitzero"`
	Err   string `json:"err,omitzero"`
	Ended bool   `json:"ended,omitzero"`
	Code  int    `json:"code,omitzero"`
}

// ThroughDemo lets a verb be carried out by the demo, with --demo in the place of --project.
func ThroughDemo(c *cobra.Command) {
	var asked bool
	c.Flags().BoolVar(&asked, demoFlag, false, "in the place of --project: ask the demo on this machine")
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if !asked {
			return run(c, args)
		}
		for _, other := range []string{"project", "prefix", "database"} {
			if c.Flags().Changed(other) {
				return cli.Usage("--demo and --%s contradict each other: the demo is a deployment of its own", other)
			}
		}
		return callDemo(c, args)
	}
}

const demoFlag = "demo"

// callDemo has the demo carry a command out, and prints what the command prints there.
func callDemo(c *cobra.Command, args []string) error {
	call := demoCall{Args: strings.Fields(c.CommandPath())[1:]}
	if c.Flags().Lookup(demoFlag) != nil {
		call.Args = append(call.Args, "--project="+demoProject)
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != demoFlag {
			call.Args = append(call.Args, given(f)...)
		}
	})
	call.Args = append(append(call.Args, "--"), args...)
	out, errOut := c.OutOrStdout(), c.ErrOrStderr()
	if s, ok := out.(*terminal.Screen); ok {
		call.Colour = s.Colour
		out = s.Out // the demo's screen has made it fit to be printed
	}
	return call.make(c.Context(), out, errOut)
}

// given are the arguments that give a flag the value that it has. The demo stands in another folder.
func given(f *pflag.Flag) (args []string) {
	values := []string{f.Value.String()}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		values = list.GetSlice()
	}
	for _, v := range values {
		if _, names := f.Annotations[cli.FileFlag]; names && v != "" && v != "-" {
			if whole, err := filepath.Abs(v); err == nil {
				v = whole
			}
		}
		args = append(args, "--"+f.Name+"="+v)
	}
	return args
}

func (call demoCall) make(ctx context.Context, out, errOut io.Writer) error {
	ctx, done := context.WithCancel(ctx)
	defer done()
	at, err := demoThatRuns(ctx)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(call)
	if err != nil {
		return err
	}
	// The verb goes on until the body ends, which is how an interrupt reaches it.
	body, end := io.Pipe()
	go func() {
		_, _ = end.Write(append(raw, '\n')) //nolint:errcheck // then there is no answer either
		<-ctx.Done()
		_ = end.Close() //nolint:errcheck // a pipe closes without an error
	}()
	resp, err := at.ask(context.WithoutCancel(ctx), verbPath, body)
	if err != nil {
		return fmt.Errorf("the demo does not answer: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadBytes('\n')
		var part demoAnswer
		if err == nil {
			err = json.Unmarshal(line, &part)
		}
		if err != nil {
			return errors.New("the demo has ended meanwhile")
		}
		_, err = io.WriteString(out, part.Out)
		_, errErr := io.WriteString(errOut, part.Err)
		switch {
		case err != nil || errErr != nil:
			return errors.Join(err, errErr)
		case part.Ended && part.Code == cli.ExitDone:
			return nil
		case part.Ended:
			return cli.ExitError(part.Code)
		}
	}
}

// ServeHTTP implements http.Handler: the demo's cloud, and beside it the functions and the verbs of this command.
func (d *RunningDemo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case demo.Serves(r.URL.Path):
		d.ServeFunction(w, r)
		return
	case !strings.HasPrefix(r.URL.Path, demoPath):
		d.Cloud.ServeHTTP(w, r)
		return
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case subtle.ConstantTimeCompare([]byte(token), []byte(d.Token)) != 1:
		http.Error(w, "the demo listens to the command pitstop alone", http.StatusUnauthorized)
	case r.URL.Path == askPath:
	case r.URL.Path == verbPath:
		d.serveVerb(w, r)
	default:
		http.NotFound(w, r)
	}
}

// serveVerb carries a verb out for another process.
func (d *RunningDemo) serveVerb(w http.ResponseWriter, r *http.Request) {
	if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body := bufio.NewReader(r.Body)
	var call demoCall
	line, err := body.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &call)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, interrupt := context.WithCancel(r.Context())
	defer interrupt()
	go func() {
		_, _ = io.Copy(io.Discard, body) //nolint:errcheck // either way its caller waits no more
		interrupt()
	}()
	a := &answering{w: w}
	code := d.carryOut(ctx, call, a)
	_ = a.send(demoAnswer{Ended: true, Code: code}) //nolint:errcheck // its caller has gone
}

// carryOut carries a verb out as its own process would.
func (d *RunningDemo) carryOut(ctx context.Context, call demoCall, a *answering) int {
	out := &terminal.Screen{Out: remote{to: a}, Colour: call.Colour, Advise: ForDemo}
	errOut := &terminal.Screen{Out: remote{to: a, err: true}, Advise: ForDemo}
	root := d.commands()
	root.SetArgs(call.Args)
	root.SetIn(strings.NewReader(""))
	root.SetOut(out)
	root.SetErr(errOut)
	code := cli.ExitCode(ctx, root.ExecuteContext(ctx), errOut)
	if err := errors.Join(out.Flush(), errOut.Flush()); err != nil {
		return cli.ExitFailed
	}
	return code
}

// answering sends what a verb prints to the process that asked for it.
type answering struct {
	mu sync.Mutex
	w  http.ResponseWriter
}

func (a *answering) send(part demoAnswer) error {
	raw, err := json.Marshal(part)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.w.Write(append(raw, '\n')); err != nil {
		return err
	}
	return http.NewResponseController(a.w).Flush()
}

// remote is the output of a verb in another process.
type remote struct {
	to  *answering
	err bool
}

// Write implements io.Writer.
func (r remote) Write(p []byte) (int, error) {
	part := demoAnswer{Out: string(p)}
	if r.err {
		part = demoAnswer{Err: string(p)}
	}
	if err := r.to.send(part); err != nil {
		return 0, err
	}
	return len(p), nil
}
