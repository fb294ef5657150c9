//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	logpb "cloud.google.com/go/logging/apiv2"
	"cloud.google.com/go/logging/apiv2/loggingpb"
	"github.com/spf13/cobra"
	mrpb "google.golang.org/genproto/googleapis/api/monitoredres"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/child"
	"pitstop.internal/scripts/pitcrew/crew"
	"pitstop.internal/scripts/pitcrew/peers"
	"pitstop.internal/scripts/pitcrew/state"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/topology"
)

// finding is one thing that doctor looked at.
type finding struct {
	grade, what, text string
}

// The grades of a finding: only failed keeps a crew from its job.
const (
	good    = "ok"
	warning = "warning"
	failing = "FAILED"
)

// doctor looks at one worker.
type doctor struct {
	flags
	try   time.Duration
	o     crew.Options
	found []finding
}

func doctorCommand() *cobra.Command {
	var d doctor
	c := &cobra.Command{
		Use:   "doctor [flags] -- COMMAND [ARG...]",
		Short: "Check this worker: what would keep pitcrew from its work?",
		Long: "Checks this worker before a training starts on it: the metadata server, the checkpoint directory, Cloud Logging, worker 0, " +
			"the key, and the command. Each line is ok, warning or FAILED. The exit code is 1 if anything failed. It takes the flags " +
			"of pitcrew run, so put \"doctor\" in place of \"run\" in your line.",
		Example: "  pitcrew doctor --checkpoint-dir gs://BUCKET/run -- python3 train.py\n" +
			"  pitcrew doctor --checkpoint-dir gs://BUCKET/run --try 2m -- python3 train.py",
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			args, err := command(c, args)
			if err != nil {
				return err
			}
			return d.examine(c.Context(), args, c.OutOrStdout())
		},
	}
	c.Flags().DurationVar(&d.try, "try", 0, "start the command for up to `TIME`: see steps, examples a second, checkpoints, and whether --save-signal saves, which may take as long again; then kill it")
	mark(c, "Doctor")
	d.define(c)
	return c
}

func (d *doctor) add(grade, what, format string, a ...any) {
	d.found = append(d.found, finding{grade, what, strings.Join(strings.Fields(fmt.Sprintf(format, a...)), " ")})
}

func (d *doctor) examine(ctx context.Context, args []string, out io.Writer) error {
	if err := d.check(args); err != nil {
		return err
	}
	d.o = crew.Options{Command: args, Say: func(f string, a ...any) { d.add(warning, "metadata server", f, a...) }}
	ctx, cancel := context.WithTimeout(ctx, time.Minute+2*d.try)
	defer cancel()
	none := make(chan os.Signal, 1)
	time.AfterFunc(10*time.Second, func() { none <- syscall.SIGTERM }) // longer than a server that answers needs
	if err := d.identify(ctx, &d.o, none); err != nil {
		d.add(failing, "metadata server", "it does not answer: without it nobody knows which worker this is")
	} else {
		d.machine(ctx)
		d.directory(ctx)
		d.data(ctx)
		d.reports(ctx)
		d.peers(ctx)
		d.words(ctx)
	}
	d.kernel()
	d.program(ctx, args)
	return d.print(out)
}

func (d *doctor) print(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	failed := 0
	for _, f := range d.found {
		if f.grade == failing {
			failed++
		}
		if _, err := fmt.Fprintf(t, "%s\t%s\t%s\n", f.grade, f.what, f.text); err != nil {
			return err
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if failed > 0 {
		return exit{code: 1}
	}
	return nil
}

func (d *doctor) machine(ctx context.Context) {
	m := d.o.Machine
	if d.o.Metadata == nil {
		d.add(warning, "metadata server", "there is none: no requests, no notices, no reports; pitcrew supervises all the same")
		return
	}
	if m.Node == "" || m.Place() == "" || m.Project == "" {
		d.add(failing, "metadata server", "it answers, but names no TPU (node %q, zone %q, project %q): give --node, --zone and --project", m.Node, m.Zone, m.Project)
	} else {
		d.add(good, "metadata server", "worker %d of %d of %s in %s, %s", m.Worker, m.Workers, m.Node, m.Place(), m.Accelerator)
	}
	if s, err := topology.Parse(m.Accelerator); err == nil && s.Workers != m.Workers && m.Slices == 1 {
		d.add(warning, "workers", "%s has %d workers, the metadata name %d", m.Accelerator, s.Workers, m.Workers)
	}
	if !m.ServiceAccounts {
		d.add(failing, "service account", "this machine has none: neither a bucket nor Cloud Logging can be used")
	}
	if err := d.o.Metadata.Put(ctx, events.GuestNamespace, "doctor", []byte(time.Now().UTC().Format(time.RFC3339))); err != nil {
		d.add(warning, "guest attributes", "they cannot be written, so Pitstop does not see the heartbeat: %v", err)
	} else {
		d.add(good, "guest attributes", "they can be written")
	}
}

// directory looks whether the checkpoint directory can be read and written, and lies where the TPU does.
func (d *doctor) directory(ctx context.Context) {
	m := d.o.Machine
	dir := strings.TrimRight(firstOf(d.flags.directory, m.Directory), "/")
	if dir == "" {
		d.add(warning, "checkpoint directory", "none is known: no lease, so nothing keeps two trainings apart, and a save cannot be seen; give --checkpoint-dir or the node's metadata key %s", events.MetadataCheckpointDir)
		return
	}
	store, err := d.store(dir)
	if errors.Is(err, fs.ErrNotExist) {
		d.add(warning, "checkpoint directory", "%s is not there yet; run makes the folder, and none above it", dir)
		return
	}
	if err != nil {
		d.add(failing, "checkpoint directory", "%v", err)
		return
	}
	found, err := checkpoint.Verify(ctx, store, dir, checkpoint.Want{})
	missing := (*checkpoint.Missing)(nil)
	switch {
	case errors.As(err, &missing) && missing.None:
		d.add(good, "checkpoint directory", "%s can be read; %s", dir, missing.Text)
	case errors.As(err, &missing):
		d.add(warning, "checkpoint directory", "%s can be read, but nothing in it is known as complete: %s", dir, missing.Text)
	case err != nil:
		d.add(failing, "checkpoint directory", "%v: it takes storage.objects.get and list", err)
		return
	case found.Doubt != "":
		d.add(warning, "checkpoint directory", "%s can be read; the last checkpoint is step %d, but %s", dir, found.Step, found.Doubt)
	default:
		d.add(good, "checkpoint directory", "%s can be read; the last complete checkpoint is step %d", dir, found.Step)
	}
	if strings.HasPrefix(dir, "file://") && m.Workers > 1 {
		d.add(warning, "checkpoint directory", "%s has to be the same folder on all %d workers: without a shared file system worker 0 alone sees the lease", dir, m.Workers)
	}
	probe := checkpoint.Join(dir, peers.Folder+"/doctor-"+m.Host)
	generation, err := store.Put(ctx, probe, []byte("doctor"), 0)
	if errors.Is(err, checkpoint.ErrConflict) { // left by one that was killed
		if o, gerr := store.Get(ctx, probe); gerr == nil {
			generation, err = o.Generation, nil
		}
	}
	if err == nil {
		err = store.Delete(ctx, probe, generation)
	}
	if err != nil {
		d.add(failing, "lease", "%v: it takes storage.objects.create and delete", err)
	} else {
		d.named(ctx, store, dir)
	}
	d.region(ctx, events.MetadataCheckpointDir, dir)
}

// data looks whether the directories of the training's data lie where the TPU does.
func (d *doctor) data(ctx context.Context) {
	for _, dir := range d.o.Machine.Data {
		d.region(ctx, events.MetadataDataDir, dir)
	}
}

// named says whom the lease names.
func (d *doctor) named(ctx context.Context, store checkpoint.Store, dir string) {
	m := d.o.Machine
	slice := m.SliceName()
	l, _, err := checkpoint.ReadLease(ctx, store, dir)
	switch {
	case errors.Is(err, checkpoint.ErrNotExist), errors.Is(err, checkpoint.ErrMalformed):
		d.missing(ctx, store, dir, err)
	case err != nil:
		d.add(failing, "lease", "%v", err)
	case crew.Foreign(l, d.workload, m):
		d.add(failing, "lease", "it belongs to %s: pitcrew trains nothing here; give each workload a checkpoint directory of its own, correct --workload, "+
			"or remove %s when %s has ended", l.Workload, checkpoint.LeaseName, l.Workload)
	case l.Admits(slice, m.Incarnation(), crew.Life(m), 0):
		d.add(good, "lease", "it names this life of %s, attempt %d, epoch %d", slice, l.Attempt, l.Epoch)
	default:
		d.add(warning, "lease", "it names another life of %s (attempt %d, epoch %d, written by %s): pitcrew waits", slice, l.Attempt, l.Epoch, l.By)
	}
}

// missing says what pitcrew does without a lease.
func (d *doctor) missing(ctx context.Context, store checkpoint.Store, dir string, why error) {
	trained, _, err := peers.Board{Store: store, Directory: dir}.Trained(ctx, d.o.Machine.Slice, 0)
	switch {
	case err != nil:
		d.add(failing, "lease", "%v", err)
	case !trained && errors.Is(why, checkpoint.ErrNotExist):
		d.add(good, "lease", "there is none yet; pitcrew writes the first")
	case trained:
		d.add(warning, "lease", "%v, and crews have trained here: the crew that it named writes it again, and any other waits %v; "+
			"a lifecycle rule of the bucket has to spare %s and %s/", why, d.times.TakeOver, checkpoint.LeaseName, peers.Folder)
	default:
		d.add(warning, "lease", "%v; pitcrew replaces it", why)
	}
}

// region compares where the bucket of a directory is with where the TPU is.
func (d *doctor) region(ctx context.Context, what, dir string) {
	rest, ok := strings.CutPrefix(dir, "gs://")
	region := topology.Region(d.o.Machine.Zone)
	if region == "" || !ok && what == events.MetadataCheckpointDir {
		return
	}
	if !ok {
		d.add(warning, "region", "%s: %s is no bucket, so nobody knows where it is", what, dir)
		return
	}
	bucket, _, _ := strings.Cut(rest, "/")
	store, err := d.store(dir)
	var at checkpoint.Location
	if locator, ok := store.(checkpoint.Locator); err == nil && ok {
		at, err = locator.Location(ctx, dir)
	}
	switch {
	case err != nil:
		d.add(warning, "region", "where the bucket %s is cannot be read (storage.buckets.get); it should be in %s", bucket, region)
	case at.Holds(region):
		d.add(good, "region", "the bucket %s is in %s, as the TPU is", bucket, region)
	case at.Covers(region):
		d.add(warning, "region", "the bucket %s is in %s, which has several regions, and the TPU in %s: what crosses is slower and may be charged", bucket, at.Name, region)
	default:
		d.add(warning, "region", "the bucket %s is in %s and the TPU in %s: what crosses is slower and charged", bucket, at.Name, region)
	}
	lease := checkpoint.Join(dir, checkpoint.LeaseName)
	if when := at.Deletes(lease); what == events.MetadataCheckpointDir && when != "" {
		d.add(warning, "lifecycle", "a rule of the bucket %s deletes %s %s; pitcrew writes it again only while it runs: give the rule a matchesPrefix or matchesSuffix that leaves it out", bucket, lease, when)
	}
}

// reports asks Cloud Logging whether it would take a report; it keeps nothing.
func (d *doctor) reports(ctx context.Context) {
	m := d.o.Machine
	if d.report == "none" || d.o.Metadata == nil && d.report != "cloud" || m.Project == "" {
		d.add(warning, "reports", "they go nowhere: Pitstop does not hear of this training")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	client, err := logpb.NewClient(ctx, d.logging()...)
	if err == nil {
		defer client.Close() //nolint:errcheck // it was only asked
		_, err = client.WriteLogEntries(ctx, &loggingpb.WriteLogEntriesRequest{
			DryRun: true, LogName: "projects/" + m.Project + "/logs/" + events.CrewLog,
			Resource: &mrpb.MonitoredResource{Type: "global", Labels: map[string]string{"project_id": m.Project}},
			Entries:  []*loggingpb.LogEntry{{Payload: &loggingpb.LogEntry_TextPayload{TextPayload: "doctor"}}},
		})
	}
	if err != nil {
		d.add(failing, "reports", "Cloud Logging takes none: %v: it takes roles/logging.logWriter", err)
		return
	}
	d.add(good, "reports", "Cloud Logging takes them")
}

// peers looks for worker 0.
func (d *doctor) peers(ctx context.Context) {
	m := d.o.Machine
	if m.Workers == 1 || m.Worker == 0 || len(m.Peers) == 0 {
		return
	}
	address := m.Peers[0]
	if _, _, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort(address, strconv.Itoa(d.port))
	}
	dial := net.Dialer{Timeout: 5 * time.Second}
	conn, err := dial.DialContext(ctx, "tcp", address)
	switch {
	case err == nil:
		_ = conn.Close() //nolint:errcheck // it was only tried
		req, rerr := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", http.NoBody)
		if rerr == nil {
			if res, derr := http.DefaultClient.Do(req); derr == nil {
				_ = res.Body.Close() //nolint:errcheck // likewise
			}
		}
		d.add(good, "worker 0", "%s answers", address)
	case errors.Is(err, syscall.ECONNREFUSED):
		d.add(warning, "worker 0", "%s can be reached, and no pitcrew listens there yet", address)
	default:
		d.add(failing, "worker 0", "%v: a firewall between the workers? (--peer-port)", err)
	}
}

func (d *doctor) kernel() {
	if why := child.Able(); why != "" {
		d.add(warning, "system", "%s", why)
	} else {
		d.add(good, "system", "processes are watched and adopted")
	}
	dir := firstOf(d.state, home())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		d.add(failing, "state", "%v (--state)", err)
		return
	}
	probe := filepath.Join(dir, ".doctor")
	if err := state.Replace(probe, nil); err != nil {
		d.add(failing, "state", "%v (--state)", err)
		return
	}
	_ = os.Remove(probe) //nolint:errcheck // an empty file
	d.add(good, "state", "%s can be written", dir)
}

// program looks at the command: whether it is there, and whether it handles the signal.
func (d *doctor) program(ctx context.Context, args []string) {
	path, err := child.Look(args)
	if err != nil {
		d.add(failing, "command", "%v", err)
		return
	}
	d.add(good, "command", "%s", path)
	sig, _ := child.SignalOf(d.signal)
	name := child.SignalName(sig)
	handles := func(n int, who string) {
		if n > 0 {
			d.add(good, "signal", "%d processes of %s handle %s", n, who, name)
		} else {
			d.add(warning, "signal", "no process of %s handles %s: it would die of it, so pitcrew does not send it; natural saves only, or --save-signal, --save-command", who, name)
		}
	}
	if d.try == 0 {
		if pid, found := child.Find(args); found {
			handles(len(child.HandlersOf(pid, sig)), fmt.Sprintf("the training that runs (%d)", pid))
			return
		}
		d.add(warning, "signal", "whether the command handles %s is seen only while it runs: start it, or give --try 2m, which starts it and kills it", name)
		return
	}
	d.o.Signal = sig
	d.follow(&d.o)
	if d.o.Scale, err = d.scaled(d.o.Machine); err != nil {
		d.add(failing, "command", "%v", err)
		return
	}
	if dir := strings.TrimRight(firstOf(d.flags.directory, d.o.Machine.Directory), "/"); dir != "" {
		if d.o.Store, err = d.store(dir); err == nil {
			d.o.Directory = dir
		}
	}
	seen, err := crew.Try(ctx, d.o, d.try)
	if err != nil {
		d.add(failing, "command", "%v", err)
		return
	}
	if seen.Handlers == 0 && seen.Ended {
		d.add(warning, "signal", "the command ended with %s before it handled %s", seen.Exit.Describe(), name)
	} else {
		handles(seen.Handlers, "the command")
	}
	d.tried(seen, name)
}

// tried says what the trial of the command showed of steps, checkpoints and a save.
func (d *doctor) tried(s crew.Seen, signal string) {
	switch {
	case s.First >= 0:
		rate := ""
		if s.Examples > 0 {
			rate = fmt.Sprintf(", %s examples a second", crew.Digits(s.Examples))
		}
		d.add(good, "steps", "step %d was seen, and %d more in %v%s", s.First, s.Steps, s.Took.Round(time.Millisecond), rate)
	case d.progress != "" || d.pattern != "":
		d.add(warning, "steps", "none was seen: is that what --progress-file or --step-pattern reads? Or give --try more time")
	default:
		d.add(warning, "steps", "not looked for, and so no save was tried: give --progress-file or --step-pattern")
	}
	if d.o.Directory == "" {
		return
	}
	missing := (*checkpoint.Missing)(nil)
	switch {
	case s.Came.URI != "":
		d.add(good, "checkpoint", "step %d came and is complete: %s", s.Came.Step, s.Came.URI)
	case errors.As(s.Looked, &missing):
		d.add(warning, "checkpoint", "none came: %s", missing.Text)
	case s.Looked != nil:
		d.add(warning, "checkpoint", "%v", s.Looked)
	default:
		d.add(warning, "checkpoint", "no new one came in this time")
	}
	end := "; the command went on"
	if s.Ended {
		end = "; the command ended with " + s.Exit.Describe()
	}
	switch {
	case s.Saved:
		d.add(good, "save", "%s: the training was saved within %v%s", signal, s.After.Round(time.Millisecond), end)
	case s.Unsure:
		d.add(warning, "save", "%s: a checkpoint came within %v; whether by the signal is not known, because others came without one%s", signal, s.After.Round(time.Millisecond), end)
	case s.Unread != nil:
		d.add(warning, "save", "%s: whether the training was saved is not known%s: %v", signal, end, s.Unread)
	case s.Asked:
		d.add(warning, "save", "%s: the training was not saved within %v%s", signal, s.After.Round(time.Millisecond), end)
	}
}
