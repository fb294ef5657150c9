package logs

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries"
	"pitstop.internal/scripts/pitstop/goodput"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/page"
	"pitstop.internal/shared/policy"
)

// record is what report and goodput read: files, or the log of a project.
type record struct {
	project string
	since   time.Duration
	who     goodput.Who
	lead    time.Duration
	asJSON  bool
	html    string
}

// account is all that a record says.
type account struct {
	goodput.Report
	Faults int `json:"faults"`

	// project is the one whose log was read; empty for files.
	project string
}

// dearest are the interruptions that cost most.
func (a account) dearest() []goodput.Interruption {
	return a.Interruptions[:min(len(a.Interruptions), 10)]
}

// teller tells an account: in words or as an object, and as a page with pictures beside the same words.
type teller interface {
	tell(ctx context.Context, p *terminal.Printer, a account) error
	page(a account, parts []page.Part) page.Report
}

// recordCommand has a verb read a record and tell its account.
func (d verbs) recordCommand(c *cobra.Command, t teller) *cobra.Command {
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
	cli.SpanVar(f, &o.lead, "lead", policy.DefaultLead, "how long before a loss a notice must come to be in time")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object")
	f.StringVar(&o.html, "html", "", "write a page with pictures into this file, which fetches nothing")
	cli.NamesFile(f, "html")
	c.RunE = func(c *cobra.Command, files []string) (err error) {
		if err = o.check(c, files); err != nil {
			return err
		}
		var a account
		if o.project != "" {
			a, err = d.readLog(c.Context(), o, c.ErrOrStderr())
		} else {
			bar := terminal.NewProgress(files, nil, c.ErrOrStderr())
			a, err = o.read(c.Context(), entries.InOrder(files, c.InOrStdin(), bar), bar, c.ErrOrStderr())
			if err == nil && a.Entries+a.Faults == 0 {
				entries.PrintNone(c.ErrOrStderr())
			}
		}
		if err == nil && (a.Entries > 0 || o.asJSON || o.html != "") {
			err = o.tell(c, t, a)
		}
		if err == nil && a.Faults > 0 {
			return cli.ErrFailed
		}
		return err
	}
	return c
}

func (o record) check(c *cobra.Command, files []string) error {
	verb, fromLog := c.Name(), c.Flags().Changed("project")
	switch {
	case fromLog && len(files) > 0:
		return cli.Usage("%s reads files or the log of --project: leave out %s, or --project", verb, files[0])
	case !fromLog && c.Flags().Changed("since"):
		return cli.Usage("--since bounds the log of --project; a file is read whole")
	case !fromLog && len(files) == 0:
		return cli.Usage("%s: name the project whose log is read (--project), or the files with your log entries; - is standard input", verb)
	case slices.Contains(o.who.Babysitters, "") || slices.Contains(o.who.Pitstop, ""):
		return cli.Usage("--babysitter and --pitstop name a principal, as the log has it: name@PROJECT.iam.gserviceaccount.com")
	case o.asJSON && o.html != "":
		return cli.Usage("--html keeps the %s as a page: leave out --json", verb)
	case len(files) > 256: // all of them are open at once
		return cli.Usage("%s: %d files are more than the 256 that it reads at once; join some of them", verb, len(files))
	case fromLog:
		return cli.CheckProject("--project", o.project)
	}
	return nil
}

// readLog reads a project's log. What was read says nothing where the rest cannot be read.
func (d verbs) readLog(ctx context.Context, o record, errOut io.Writer) (a account, err error) {
	s, err := d.OpenReadOnly(ctx)
	if err != nil {
		return a, err
	}
	reading, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	r := &logReader{
		Deployment: d.Deployment, ctx: ctx, fail: fail, log: s.Log, project: o.project, from: d.Now().Add(-o.since), until: d.Now(),
		meter: terminal.NewMeter(errOut, d.Now), errOut: errOut,
	}
	a, err = o.read(reading, []entries.Source{r.open}, nil, errOut)
	if why := context.Cause(reading); why != nil {
		return a, why
	}
	if err == nil && a.Entries+a.Faults == 0 {
		terminal.Print(errOut, "pitstop: 0 entries in the log of project "+o.project+" since "+r.from.UTC().Format(time.RFC3339)+
			"; --since looks further back; --project has to be that of the TPUs")
	}
	return a, err
}

// read reads what the sources hold together, each in the order of its times.
func (o record) read(ctx context.Context, sources []entries.Source, bar *terminal.Progress, errOut io.Writer) (a account, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	f := entries.Faults{ErrOut: errOut}
	defer f.PrintRest()
	defer bar.Done()
	work := entries.NewPool(ctx, entries.ReadAll)
	var all merged
	for i := range sources {
		all.lines = append(all.lines, &timeline{source: work.Stream(ctx, sources[i:i+1], bar, entries.RunsAtOnce(len(sources))), fault: f.Add})
	}
	book := goodput.New(o.who, o.lead)
	for {
		e, err := all.next(ctx)
		switch {
		case err != nil:
			return a, err
		case f.Unusable:
			return a, cli.ErrUnusable // without that file the account would be wrong
		case e == nil:
			a.Report, a.Faults, a.project = book.Report(), f.N, o.project
			return a, nil
		}
		book.Add(*e)
	}
}

// tell prints an account, or keeps it as a page.
func (o record) tell(c *cobra.Command, t teller, a account) error {
	p, out, k := terminal.NewPrinter(c.OutOrStdout(), o.asJSON), bufio.NewWriter(c.OutOrStdout()), printed{}
	p.Out = out
	if o.html != "" {
		p = k.printer()
	}
	if !o.asJSON {
		printRecord(p, a)
	}
	if err := t.tell(c.Context(), p, a); err != nil || o.html == "" {
		return cmp.Or(err, out.Flush())
	}
	k.lines()
	return cli.Keep(c.OutOrStdout(), o.html, func(file io.Writer) error { return page.WriteReport(file, t.page(a, k.parts)) })
}

// printRecord says of which record an account is.
func printRecord(p *terminal.Printer, a account) {
	when := "entries without a time"
	if !a.From.IsZero() {
		when = a.From.UTC().Format("Jan 2 2006 15:04") + " to " + a.To.UTC().Format("Jan 2 2006 15:04") + " UTC"
	}
	terminal.Print(p.Out, p.Paint(terminal.Bold, when)+" · "+terminal.Numbered(a.Entries, "entry", "entries")+", "+number(a.Used)+" of them about "+terminal.Numbered(a.Slices+a.Unnamed, "TPU"))
	if a.Faults > 0 {
		terminal.Print(p.Out, terminal.Numbered(a.Faults, "entry or line", "entries or lines")+" could not be read: this report is of the others alone")
	}
}

// printUnsure lists what the logs do not say.
func printUnsure(p *terminal.Printer, unsure []string) {
	if len(unsure) > 0 {
		terminal.Print(p.Out, p.Paint(terminal.Bold, "what the logs do not say"))
	}
	for _, u := range unsure {
		terminal.Print(p.Out, "- "+strings.Join(terminal.Wrap(u, p.Width()-2), "\n  "))
	}
}

// mostRows bounds the rows that are told to people.
const mostRows = 20

// printTable prints a table of things, unless there are none, and leaves out the columns in which nothing stands. The first columns, head of
// them, say what a row is about.
func printTable[T any](p *terminal.Printer, title string, most, head int, names []string, all []T, row func(T) []string) {
	if len(all) == 0 {
		return
	}
	rows := [][]string{names}
	for _, x := range all {
		rows = append(rows, row(x))
	}
	for i := len(names) - 1; i >= head; i-- {
		if !slices.ContainsFunc(rows[1:], func(r []string) bool { return r[i] != "-" }) {
			for j := range rows {
				rows[j] = slices.Delete(rows[j], i, i+1)
			}
		}
	}
	p.Table(title, most, head, rows)
}

func words[T ~string](of T) string { return strings.ReplaceAll(string(of), "_", " ") }

func number(n int) string { return events.Number(int64(n)) }

func date(t time.Time) string { return t.UTC().Format("Jan 2 2006 15:04:05") }

// took is a time that may be nothing, and seconds one where nothing is none.
func took(s float64) string { return terminal.SecondsText(math.Round(s)) }

func seconds(s float64) string { return orDash(s, took(s)) }

// figure is a number with so many digits behind its point.
func figure(digits int, x float64) string { return orDash(x, strconv.FormatFloat(x, 'f', digits, 64)) }

// only is a text where something holds, and nothing where it does not.
func only(holds bool, text string) string {
	if !holds {
		return ""
	}
	return text
}

// orDash is the text of a number, and a dash for nothing.
func orDash(x float64, text string) string {
	if x == 0 {
		return "-"
	}
	return text
}
