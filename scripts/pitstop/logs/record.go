package logs

import (
	"bufio"
	"context"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries"
	"pitstop.internal/scripts/pitstop/goodput"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/policy"
)

// record is what report and goodput read: files, or the log of a project.
type record struct {
	project string
	since   time.Duration
	who     goodput.Who
	lead    time.Duration
}

// teller tells what a record says: each loss as soon as its end is known, and the rest at the end.
type teller interface {
	loss(goodput.Loss)
	end(ctx context.Context, r goodput.Report, faults int) error
}

// recordCommand makes a verb of what it does with a record. Out is what is printed in the end, and screen where that is shown.
func (d verbs) recordCommand(
	c *cobra.Command, flags func(*pflag.FlagSet), tell func(o record, out, screen io.Writer) (teller, error),
) *cobra.Command {
	var o record
	c.Long += "With --project it reads the entries that the sinks would select from the project's log, page by page, a page each second. That\n" +
		"needs roles/logging.viewer, and no deployment. Cloud Logging keeps system events and audit entries for 400 days, and crews'\n" +
		"lines for 30 days unless your log bucket says otherwise.\n\n" +
		"Files hold what gcloud logging read --format=json writes, or answers of Logging's entries.list, of any size. The entries of\n" +
		"a file go up or down in time. - is standard input.\n\n" +
		"Exit codes: 0 when all entries are read, 1 when some are not, 2 when the call or a file cannot be used."
	f := c.Flags()
	f.StringVar(&o.project, "project", "", "the project whose log is read, in the place of files")
	cli.SpanVar(f, &o.since, "since", 30*cli.Day, "how far back the log of --project is read, as in 30d or 12h")
	f.StringArrayVar(&o.who.Babysitters, "babysitter", nil, "the principal of an older script that deletes and creates TPUs; repeat it for each")
	f.StringArrayVar(&o.who.Pitstop, "pitstop", nil, "a principal of Pitstop's; by default the service accounts called pitstop or pitstop-*; repeat it for each")
	f.DurationVar(&o.lead, "lead", policy.DefaultLead, "how long before a loss a notice must come to be in time")
	flags(f)
	c.RunE = func(c *cobra.Command, files []string) error {
		if err := o.check(c, files); err != nil {
			return err
		}
		// Losses wait here while the record is read: the record may turn out to be unusable.
		out := bufio.NewWriterSize(c.OutOrStdout(), 1<<20)
		t, err := tell(o, out, c.OutOrStdout())
		if err != nil {
			return err
		}
		if o.project != "" {
			return d.readLog(c.Context(), o, t, out, c.ErrOrStderr())
		}
		bar := terminal.NewProgress(files, nil, c.ErrOrStderr())
		n, err := o.read(c.Context(), entries.FilesOf(files, c.InOrStdin(), bar), t, bar, out, c.ErrOrStderr())
		if err == nil && n == 0 {
			entries.PrintNone(c.ErrOrStderr())
		}
		return err
	}
	return c
}

// largest bounds the streams that are read at once.
const largest = 256

func (o record) check(c *cobra.Command, files []string) error {
	verb, fromLog := c.Name(), c.Flags().Changed("project")
	switch {
	case fromLog && len(files) > 0:
		return cli.Usage("%s reads files or the log of --project: leave out %s, or --project", verb, files[0])
	case !fromLog && c.Flags().Changed("since"):
		return cli.Usage("--since bounds the log of --project; a file is read whole")
	case !fromLog && len(files) == 0:
		return cli.Usage("%s: name the project whose log is read (--project), or the files with your log entries; - is standard input", verb)
	case o.since <= 0:
		return cli.Usage("--since %s: it has to be more than 0", o.since)
	case slices.Contains(o.who.Babysitters, "") || slices.Contains(o.who.Pitstop, ""):
		return cli.Usage("--babysitter and --pitstop name a principal, as the log has it: name@PROJECT.iam.gserviceaccount.com")
	case o.lead < 0:
		return cli.Usage("--lead %v: it cannot be negative", o.lead)
	case len(files) > largest:
		return cli.Usage("%s: %d files are more than the %d that it reads at once; join some of them", verb, len(files), largest)
	case fromLog:
		return cli.CheckProject("--project", o.project)
	}
	return nil
}

// readLog tells what a project's log says. What was read says nothing where the rest cannot be read.
func (d verbs) readLog(ctx context.Context, o record, t teller, out *bufio.Writer, errOut io.Writer) error {
	s, err := d.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	reading, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	r := &logReader{
		Deployment: d.Deployment, ctx: ctx, fail: fail, log: s.Log, project: o.project, from: d.Now().Add(-o.since), until: d.Now(),
		meter: terminal.NewMeter(errOut, d.Now), errOut: errOut,
	}
	n, err := o.read(reading, []entries.Source{r.open}, t, nil, out, errOut)
	switch why := context.Cause(reading); {
	case why != nil:
		return why
	case err == nil && n == 0:
		terminal.Print(errOut, "pitstop: 0 entries in the log of project "+o.project+" since "+r.from.UTC().Format(time.RFC3339)+
			"; --since looks further back; --project has to be that of the TPUs")
	}
	return err
}

// read tells what the sources hold together, each in the order of its times. It returns how many entries they hold.
func (o record) read(ctx context.Context, sources []entries.Source, t teller, bar *terminal.Progress, out *bufio.Writer, errOut io.Writer) (n int, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	f := entries.Faults{ErrOut: errOut}
	work := entries.NewPool(ctx, entries.ReadAll)
	var all merged
	for i := range sources {
		t := &timeline{source: work.Stream(ctx, sources[i:i+1], bar, entries.RunsAtOnce(len(sources))), fault: f.Add}
		defer t.close()
		all.lines = append(all.lines, t)
	}
	a := goodput.New(o.who, o.lead, t.loss)
	if s, ok := t.(interface{ stopped(b goodput.Interruption) }); ok {
		a.Stopped = s.stopped
	}
	for {
		e, err := all.next(ctx)
		if err != nil {
			bar.Done()
			return n, err
		}
		if f.Unusable {
			bar.Done()
			f.PrintRest()
			return n, cli.ErrUnusable // without that file the account would be wrong
		}
		if e == nil {
			break
		}
		n++
		a.Add(*e)
	}
	r := a.Report()
	bar.Done()
	f.PrintRest()
	if err := t.end(ctx, r, f.N); err != nil {
		return n, err
	}
	if err := out.Flush(); err != nil {
		return n, err
	}
	if f.N > 0 {
		return n, cli.ErrFailed
	}
	return n, nil
}
