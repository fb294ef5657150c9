package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"

	"pitstop.internal/scripts/package/process"
)

const (
	// startsWithin and endsWithin bound the life of a function on a busy machine; answersWithin bounds one answer.
	startsWithin  = 30 * time.Second
	answersWithin = 20 * time.Second
	endsWithin    = 5 * time.Second
)

// verify does with a staged folder what Google's buildpack does, starts the program that comes out of it, with its
// configuration and without, and asks it. It returns the number of checks, and those that failed.
func verify(ctx context.Context, m module, f process.Function, staged string) (checks int, faults []error) {
	fault := func(what string, err error) {
		checks++
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %s: %w", f.Name, what, err))
		}
	}
	known, err := questions(m, f.Name)
	if err != nil {
		return 1, []error{fmt.Errorf("%s: %w", f.Name, err)}
	}
	dir, err := os.MkdirTemp("", "pitstop-package-")
	if err != nil {
		return 1, []error{err}
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is temporary
	fault("build", build(ctx, m, staged, dir))
	if faults != nil {
		return checks, faults
	}
	database, err := emptyDatabase(ctx)
	if err != nil {
		return checks, append(faults, err)
	}
	defer database.Stop()
	world, err := noCloud(dir, database.address)
	if err != nil {
		return checks, append(faults, err)
	}
	bare, err := unconfigured(staged, f.Name)
	if err != nil {
		return checks, append(faults, err)
	}
	for _, life := range []struct {
		name        string
		environment []string
		questions   []question
	}{
		{"configured", append(process.Environment(), world...), known},
		{"not configured", nil, []question{bare}},
	} {
		p, err := start(ctx, dir, f.Target, life.environment)
		fault("start, "+life.name, err)
		if err != nil {
			continue
		}
		for _, q := range life.questions {
			fault(q.name, p.ask(ctx, q))
		}
		fault("end on SIGTERM, "+life.name, p.end())
	}
	return checks, faults
}

// build copies a staged folder to dir/source, adds the program that the buildpack adds, and builds dir/function without a network:
// a file that an archive lacks is not found elsewhere.
func build(ctx context.Context, m module, staged, dir string) error {
	source := filepath.Join(dir, "source")
	if err := os.CopyFS(source, os.DirFS(staged)); err != nil {
		return err
	}
	app := filepath.Join(source, "functions.local", "app")
	if err := os.MkdirAll(app, 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(app, "main.go"), process.Main(m.Path), 0o600); err != nil {
		return err
	}
	// Without the paths of this machine, packages that several functions share are compiled once.
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, "function"), "./functions.local/app") //nolint:gosec // our own arguments
	c.Dir = source
	c.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.ReplaceAll(bytes.TrimSpace(out), []byte("\n"), []byte("; ")))
	}
	return nil
}

// database is a Firestore on loopback in which nothing is and to which nothing can be written.
type database struct {
	firestorepb.UnimplementedFirestoreServer
	*grpc.Server
	address string
}

func emptyDatabase(ctx context.Context) (*database, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &database{Server: grpc.NewServer(), address: l.Addr().String()}
	firestorepb.RegisterFirestoreServer(d.Server, d)
	go d.Serve(l) //nolint:errcheck // whoever asks it notices
	return d, nil
}

// BatchGetDocuments finds no document.
func (d *database) BatchGetDocuments(r *firestorepb.BatchGetDocumentsRequest, s firestorepb.Firestore_BatchGetDocumentsServer) error {
	for _, name := range r.Documents {
		if err := s.Send(&firestorepb.BatchGetDocumentsResponse{Result: &firestorepb.BatchGetDocumentsResponse_Missing{Missing: name}}); err != nil {
			return err
		}
	}
	return nil
}

// noCloud is the rest of the environment: Google's clients find the database and credentials that are good for nothing,
// and whatever is meant for the internet ends at a port where nobody listens.
func noCloud(dir, database string) ([]string, error) {
	credentials := filepath.Join(dir, "credentials.json")
	err := os.WriteFile(credentials, []byte(`{"type":"authorized_user","client_id":"none","client_secret":"none","refresh_token":"none"}`), 0o600)
	return []string{"FIRESTORE_EMULATOR_HOST=" + database, "GOOGLE_APPLICATION_CREDENTIALS=" + credentials, "HTTPS_PROXY=http://127.0.0.1:1"}, err
}

// running is a function's process. It writes its log to a file; a line is there before the answer that follows it.
type running struct {
	url   string
	log   string
	read  int
	cmd   *exec.Cmd
	ended chan error
}

// start starts dir/function with only this environment, and returns when it listens.
func start(ctx context.Context, dir, target string, environment []string) (*running, error) {
	port, err := process.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()                                             //nolint:errcheck // the process has its own
	c := exec.CommandContext(ctx, filepath.Join(dir, "function")) //nolint:gosec // built above
	c.Env = append([]string{"PORT=" + port, "FUNCTION_TARGET=" + target, "LOG_LEVEL=DEBUG"}, environment...)
	c.Stdout, c.Stderr = log, log
	dieWithParent(c)
	if err := c.Start(); err != nil {
		return nil, err
	}
	p := &running{url: "http://127.0.0.1:" + port, log: log.Name(), cmd: c, ended: make(chan error, 1)}
	go func() { p.ended <- c.Wait() }()
	if err := p.listening(ctx, port); err != nil {
		return nil, errors.Join(err, p.kill())
	}
	// What the framework says at its start is no JSON; what comes later has to be.
	said, err := os.ReadFile(p.log)
	p.read = len(said)
	return p, err
}

func (p *running) listening(ctx context.Context, port string) error {
	ctx, cancel := context.WithTimeout(ctx, startsWithin)
	defer cancel()
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not listen: %w", err)
		case err := <-p.ended:
			p.ended <- err
			said, _ := os.ReadFile(p.log) //nolint:errcheck // then it said nothing
			return fmt.Errorf("it ended at once (%w): %s", err, bytes.TrimSpace(said))
		case <-time.After(time.Millisecond):
		}
	}
}

// ask sends one body and judges the answer.
func (p *running) ask(ctx context.Context, q question) error {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(q.body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	said, err := os.ReadFile(p.log)
	if err != nil {
		return err
	}
	said, p.read = said[p.read:], len(said)
	return q.judge(resp.StatusCode, said)
}

// end asks the process to end, as Cloud Run does.
func (p *running) end() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-p.ended:
		return err // nil is exit code 0
	case <-time.After(endsWithin):
		return errors.Join(fmt.Errorf("it still runs after %s", endsWithin), p.kill())
	}
}

func (p *running) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended //nolint:errcheck // it was killed
	return nil
}
