package logs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/layout"
	"pitstop.internal/scripts/logfile"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// explained is the object that explain --json prints for each entry.
type explained struct {
	// Index is the place of the entry, from 1.
	Index   int    `json:"index"`
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Rank    string `json:"rank"`
	LeadsTo string `json:"leads_to"`
	Ignored bool   `json:"ignored"`
	Reason  string `json:"reason"`
	// Code is the reason why nothing follows, or why Pitstop would do nothing, in one word.
	Code reason.Code `json:"code"`
	// Calls are the calls that Pitstop would make in the end, as far as an entry alone can tell: for a Spot slice, if all goes well.
	Calls []wouldCall `json:"calls,omitempty"`
	Error string      `json:"error"`
}

// wouldCall is a call that Pitstop would make, and the level of the switch that decides about it.
type wouldCall struct {
	view.Planned
	Level string `json:"level"`
	// LimitedBy names the policy or the deployment that keeps the switch below yes; it is empty for yes.
	LimitedBy string `json:"limited_by"`
	// decides is the switch. A call that has none of its own follows the one before it.
	decides policy.Switch
}

// String is the call for people, with the switch that decides about it.
func (c wouldCall) String() string {
	call := c.Planned
	call.Switch = ""
	text := call.String()
	switch {
	case c.decides == "":
		return text
	case c.Level == policy.Yes.String():
		return text + " (allowed by " + string(c.decides) + ")"
	}
	why := string(c.decides) + " is " + c.Level
	if c.LimitedBy != "" {
		why += ", limited by " + c.LimitedBy
	}
	if c.Level == policy.Ask.String() {
		return text + " (after a person approves: " + why + ")"
	}
	return text + " (blocked: " + why + ")"
}

// decided adds to each call the level of its switch under a policy.
func decided(calls []view.Planned, p policy.Policy) (all []wouldCall) {
	var last policy.Switch
	for _, c := range calls {
		last = cmp.Or(c.Switch, last)
		w := wouldCall{Planned: c, decides: last, Level: p.Switches.Level(last).String()}
		if last != "" && w.Level != policy.Yes.String() {
			w.LimitedBy = incident.Workload{}.Limit(last, p)
		}
		all = append(all, w)
	}
	return all
}

func explainCommand() *cobra.Command {
	var asJSON bool
	var policyFlag string
	var allow cli.AllowFlag
	c := &cobra.Command{
		Use:   "explain [FILE...]",
		Short: "Say what log entries and descriptions of TPUs mean to Pitstop, or why they are ignored",
		Long: "Say for each log entry how Pitstop reads it: its kind, its subject, how far Pitstop trusts it, and its consequence under\n" +
			"the policy. Or say why Pitstop ignores it. explain calls nothing: it names the calls that Pitstop would make, and the\n" +
			"switch that allows or blocks each.\n\n" +
			"Files hold what gcloud logging read --format=json writes, or answers of Logging's entries.list. A file may also hold what\n" +
			"gcloud compute tpus tpu-vm describe writes, as YAML or JSON: Pitstop reads the same from the API. - is standard input, and\n" +
			"so is no file where something is piped in.\n\n" +
			"Exit codes: 0 when all entries are read, 1 when some are not, 2 when the call or a file cannot be used.",
		RunE: func(c *cobra.Command, files []string) error {
			p, err := cli.ReadPolicy(policyFlag)
			if err != nil {
				return err
			}
			if p.Allow, err = allow.Switches(); err != nil {
				return err
			}
			switch {
			case len(files) == 0 && terminal.IsTerminal(c.InOrStdin()):
				return cli.Usage("explain: name the files with your log entries; - is standard input")
			case len(files) == 0:
				files = []string{"-"}
			}
			return explain(c.Context(), files, c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr(), p, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per entry")
	c.Flags().StringVar(&policyFlag, "policy", "", "a preset (watch, spot, reserved), or FILE, or FILE:NAME")
	allow.AddTo(c)
	return c
}

// explanations is the output for a run of entries.
type explanations struct {
	out, err bytes.Buffer
	failed   bool
	unusable bool // a whole file could not be read
	count    census
}

func explain(ctx context.Context, files []string, in io.Reader, out, errOut io.Writer, p cli.ChosenPolicy, asJSON bool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	chosen, columns := p.Policy(), layout.Width()
	work := entries.NewPool(ctx, func(items []logfile.Item, first int, x *explanations) {
		x.out.Reset()
		x.err.Reset()
		x.failed, x.unusable, x.count = false, false, census{}
		for i, it := range items {
			x.add(first+i+1, it, p, chosen, asJSON, columns)
		}
	})
	bar := terminal.NewProgress(files, out, errOut)
	all := work.Stream(ctx, entries.FilesOf(files, in, bar), bar, entries.RunsAtOnce(1))
	failed, unusable := false, false
	var count census
	for x := all.Next(ctx); x != nil; x = all.Next(ctx) {
		failed, unusable = failed || x.failed, unusable || x.unusable
		count.join(x.count)
		_, err := x.out.WriteTo(out)
		if err == nil {
			_, err = x.err.WriteTo(errOut)
		}
		if err != nil {
			return err
		}
	}
	bar.Done()
	if !asJSON && count.all > 1 {
		terminal.Print(out, count.String())
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case unusable:
		return cli.ErrUnusable
	case failed:
		return cli.ErrFailed
	case count.all == 0:
		entries.PrintNone(errOut)
	}
	return nil
}

// census counts entries by their meaning; it keeps nothing else of them.
type census struct {
	all, used, noted, unknown, refused int
	// kinds are those of the entries that were understood.
	kinds map[string]int
}

func (t *census) add(x explained) {
	t.all++
	switch {
	case x.Error != "":
		t.refused++
		return
	case !x.Ignored:
		t.used++
	case events.Kind(x.Kind).Known():
		t.noted++
	default:
		t.unknown++
		return
	}
	if t.kinds == nil {
		t.kinds = map[string]int{}
	}
	t.kinds[x.Kind]++
}

// join adds another count.
func (t *census) join(o census) {
	t.all, t.used, t.noted, t.unknown, t.refused = t.all+o.all, t.used+o.used, t.noted+o.noted, t.unknown+o.unknown, t.refused+o.refused
	if t.kinds == nil {
		t.kinds = map[string]int{}
	}
	for k, n := range o.kinds {
		t.kinds[k] += n
	}
}

// String is one line for people.
func (t *census) String() string {
	count := func(n int) string { return events.Number(int64(n)) }
	s := count(t.all) + " entries: " + count(t.used) + " lead to something, " + count(t.noted) + " noted only, " + count(t.unknown) + " of unknown kinds"
	if t.refused > 0 {
		s += ", " + count(t.refused) + " refused"
	}
	var kinds []string
	for _, k := range slices.Sorted(maps.Keys(t.kinds)) {
		kinds = append(kinds, k+" "+count(t.kinds[k]))
	}
	if len(kinds) > 0 {
		s += " (" + strings.Join(kinds, ", ") + ")"
	}
	return s
}

// add explains the item that is the nth of all.
func (x *explanations) add(n int, it logfile.Item, c cli.ChosenPolicy, p policy.Policy, asJSON bool, columns int) {
	e, err := explainEntry(n, it.Read(), c, p)
	if err != nil {
		x.failed = true
		x.unusable = x.unusable || errors.Is(err, logfile.ErrUnusable)
		e.Error = cli.OneLine(err)
	}
	x.count.add(e)
	if !asJSON {
		explainLine(&x.out, &x.err, it.Record, e, columns)
		return
	}
	if err := json.MarshalWrite(&x.out, e); err != nil {
		x.failed = true
		return
	}
	x.out.WriteByte('\n')
}

// explainEntry says what an entry means under the policy p, or the description of a TPU, which is no entry, under the policy of the TPU.
func explainEntry(n int, r logfile.Reading, c cli.ChosenPolicy, p policy.Policy) (explained, error) {
	e := r.Entry
	if r.Err != nil && r.Raw != nil {
		if s, is, err := cloudtpu.Described(r.Raw); is {
			if err != nil {
				return explained{Index: n}, fmt.Errorf("%s: %w", r.Where(), err)
			}
			return explainReading(n, s, c.For(s.Labels[events.LabelPolicy])), nil
		}
	}
	if f := cloudtpu.Audited(e.Call); f != nil {
		e.Call.Message = f.Message + " (" + strings.ReplaceAll(string(f.Class), "_", " ") + ")"
	}
	x := explained{Index: n, Kind: string(e.Kind), Subject: e.Subject.String(), Rank: e.Rank.String(), Reason: e.Describe()}
	switch {
	case r.Err != nil:
		return x, r.Err
	case e.Ignored != "":
		x.Ignored, x.Reason, x.Code = true, e.Noted(), reason.CodeNothing
		return x, nil
	}
	x.LeadsTo, x.Code = leadsTo(e, p)
	x.Calls = decided(rehearsed(e, p), p)
	return x, nil
}

// leadsTo says in plain words what follows from an entry about a workload that is training. The code names the refusal of the policy
// that blocks the first step of it.
func leadsTo(e events.Entry, p policy.Policy) (text string, code reason.Code) {
	return weighed(p, func(does does) string { return follows(e, p, does) })
}

// does says that Pitstop would do something, or that a switch of the policy forbids it.
type does = func(s policy.Switch, what string) string

// weighed is what follows under a policy, and the code of the refusal that blocks the first step of it.
func weighed(p policy.Policy, follows func(does) string) (text string, code reason.Code) {
	asked := 0
	text = follows(func(s policy.Switch, what string) string {
		first := asked == 0
		asked++
		refused := func(c reason.Code) {
			if first {
				code = c
			}
		}
		switch p.Switches.Level(s) {
		case policy.Yes:
			return what
		case policy.Ask:
			refused(reason.CodePolicyAsk)
			return what + ", once a person approves (" + (incident.Workload{}).Forbids(s, policy.Ask, p) + ")"
		case policy.No:
		}
		if p.Switches.WatchOnly() {
			refused(reason.CodeWatchOnly)
		} else {
			refused(reason.CodePolicyNo)
		}
		return "nothing is done (" + (incident.Workload{}).Forbids(s, policy.No, p) + "); otherwise Pitstop would " + what
	})
	return text, code
}

func follows(e events.Entry, p policy.Policy, does does) string {
	switch e.Kind {
	case events.KindNotice:
		switch e.Notice.Status {
		case events.NoticeGone:
			return "an incident that waits for this maintenance goes on to confirm progress, or ends withdrawn; otherwise nothing"
		case events.NoticeOngoing:
			return "an incident: " + does(policy.RequestCheckpoint, "ask the training to save at once, then wait for Google and for progress")
		case events.NoticePending:
		}
		if e.Notice.WindowStart.IsZero() {
			return "Pitstop keeps the notice; it names no time, so Pitstop asks for nothing before the maintenance begins"
		}
		if e.Notice.CanReschedule && p.Switches.EarlyMaintenance != policy.No && p.Switches.RequestCheckpoint != policy.No {
			return "an incident, where the size of the slice allows early maintenance and a crew can save: " +
				does(policy.EarlyMaintenance, "ask the training to save now, and start the maintenance right after it")
		}
		at, why := saveDue(e, p)
		if !e.Time.IsZero() && !at.After(e.Time) {
			return "an incident: " + does(policy.RequestCheckpoint, "ask the training to save at once, "+why)
		}
		return fmt.Sprintf("Pitstop keeps the notice; at %s, %s: %s", at.UTC().Format("2006-01-02 15:04 UTC"), why,
			does(policy.RequestCheckpoint, "ask the training to save"))
	case events.KindLoss:
		if e.Subject.Platform() == events.PlatformGKE {
			return "an incident of the watched Job that is on this machine, with this cause: patrol reads the Job, and that reading decides what follows. Where no Job is watched on it, nothing"
		}
		const again = "delete it and create it again"
		return "an incident: look at the API; if the slice is lost and Spot, " + does(policy.Recreate, again) +
			"; if it is not Spot, wait for Google's own recovery, then " + does(policy.RecreateNonSpot, again)
	case events.KindBack, events.KindLine:
		return "a look at the slice, if an incident waits for that"
	case events.KindCall:
		return callLeadsTo(e.Call)
	case events.KindCrew:
		return crewLeadsTo(e.Crew.Report, does)
	case events.KindCanary:
		return "a note that log entries arrive"
	case events.KindJob, events.KindCluster, events.KindLimit, events.KindForeign:
		// Nothing ever follows, and its reason says why.
	}
	return ""
}

// What replay assumes of a training of which nothing else is known: a checkpoint so often, of which it has measured enough for a
// lead after so long. A test compares the time that follows from them with the one that replay comes to.
const (
	replaySaves    = 10 * time.Minute
	replayMeasured = time.Hour
)

// saveDue is the time at which Pitstop asks for the save before announced maintenance, and the reason for that time. Package
// incident computes it, as in a replay.
func saveDue(e events.Entry, p policy.Policy) (at time.Time, why string) {
	p.Switches.EarlyMaintenance = policy.No // what may start early is another sentence
	slice := evidence.Read{
		Slice: "it", Zone: e.Subject.Zone, Incarnation: events.Incarnation{Zone: e.Subject.Zone, ID: "1"}, Directory: "gs://" + events.MetadataCheckpointDir,
	}
	due := func(checkpoints int) time.Time {
		return incident.SaveDue(p, slice, e.Notice, evidence.Origin{ID: "entry", Time: e.Time, Rank: e.Rank}, replaySaves, checkpoints)
	}
	const many = 20
	if at = due(many); at.Before(e.Time.Add(replayMeasured)) {
		at = due(0)
	}
	lead := e.Notice.WindowStart.Sub(at)
	why = events.Span(lead) + " before the window, "
	if lead == p.Lead {
		return at, why + "as the policy says"
	}
	if lead == policy.DefaultLead {
		return at, why + "until its checkpoints are measured"
	}
	return at, why + "if the training saves every " + events.Span(replaySaves) + ", as replay assumes"
}

// rehearsed are the calls to which an entry would lead if the policy allowed them all. A name that the entry does not give stands in
// angle brackets.
func rehearsed(e events.Entry, p policy.Policy) []view.Planned {
	switch e.Kind {
	case events.KindLoss, events.KindNotice:
	case events.KindCrew:
		if e.Crew.Report != events.ReportGaveUp {
			return nil
		}
	default:
		return nil
	}
	name := e.Subject.Node
	if _, _, ok := e.Subject.Group(); ok && name == "" {
		name = "<its-slice>" // of the workers that the subject names
	}
	if name == "" {
		return nil
	}
	slice := evidence.Read{
		Slice: name, Zone: e.Subject.Zone, Directory: "gs://<" + events.MetadataCheckpointDir + ">",
		Facts: evidence.Facts{Group: e.Subject.QueuedResource, Capacity: events.Spot},
	}
	if e.Kind == events.KindNotice {
		slice.Facts.Accelerator = maintainsEarly // the notice names no shape, and says whether its maintenance can be started early
	}
	w := incident.Assumed(e.Subject.Project, cloudtpu.Name, slice, time.Time{})
	origin, now := evidence.Origin{Time: e.Time}, e.Time
	if now.IsZero() {
		now = time.Unix(0, 0)
	}
	switch e.Kind {
	case events.KindLoss:
		return w.IfRead(p, name, evidence.Lost, now).Calls
	case events.KindNotice:
		return w.IfAllowed(p, evidence.Noticed{Origin: origin, Slice: name, Notice: e.Notice}, now).Calls
	default:
		report := events.CrewReport{Report: events.ReportGaveUp, Attempt: max(e.Crew.Attempt, 1)}
		return w.IfAllowed(p, evidence.Reported{Origin: origin, Slice: name, Report: report}, now).Calls
	}
}

// maintainsEarly is a shape whose maintenance can be started before its window.
const maintainsEarly = "v6e-16"

func callLeadsTo(c events.Call) string {
	switch who := (events.Accounts{}).Party(c); {
	case c.Code != 0:
		return "a look at the slice, if an incident waits for it: the call changed nothing"
	case who == events.PartyNobody:
		return "a look at the slice, if an incident waits for it: only the entry that began the operation says who called"
	case who == events.PartyGoogle:
		return "a look at the slice, if an incident waits for it: Google itself made the call"
	case who == events.PartyController:
		return "nothing: a controller of the cluster made the call, and patrol reads the Job itself each minute"
	}
	return "the owner's decision: an incident on this slice ends released, unless Pitstop itself made the call"
}

func crewLeadsTo(r events.Report, does does) string {
	switch r {
	case events.ReportStarted, events.ReportProgress:
		return "Pitstop keeps the progress; it ends an incident if it passes the saved step"
	case events.ReportSaved:
		return "if an incident asked for the checkpoint, Pitstop verifies it before it counts"
	case events.ReportRefused:
		return "an incident that asked for the save goes on without it"
	case events.ReportExited:
		return "an incident: the crew restarts the training within its own budget; Pitstop waits for progress"
	case events.ReportGaveUp:
		return "an incident; once the crew's verdict says the same: " +
			does(policy.Restart, "ask the crew for a new attempt, up to three times")
	case events.ReportFinished:
		return "Pitstop notes it; when a slice is lost, the crew's verdict decides whether Pitstop brings it back"
	case events.ReportNotice:
		return "the same as the notice itself, but a crew line may only start a save or a look"
	}
	return ""
}

// explainLine prints an entry for people, in lines of that many columns. Every text hangs under itself, with a name before it or not.
func explainLine(out, errOut *bytes.Buffer, r logfile.Record, x explained, columns int) {
	row := func(name, text string) {
		head := fmt.Sprintf("  %-10s  ", name)
		line := head + text
		if len(line) > columns { // else it fits: a character has no fewer bytes than columns
			line = strings.Join(layout.Break(line, columns, len(head)), "\n")
		}
		out.WriteString(line + "\n")
	}
	switch {
	case x.Error != "":
		fmt.Fprintf(errOut, "pitstop: %s\n", x.Error)
		return
	case x.Ignored:
		fmt.Fprintf(out, "%s\n  ignored: %s\n", r.Where(), x.Reason)
	default:
		fmt.Fprintf(out, "%s\n  %s\n", r.Where(), x.Reason)
	}
	if !x.Ignored || events.Kind(x.Kind).Known() {
		row("kind", x.Kind+" ("+x.Rank+")")
		if x.Subject != "" {
			row("subject", x.Subject)
		}
	}
	if !x.Ignored {
		row("leads to", terminal.WithCode(x.LeadsTo, string(x.Code)))
	}
	name := "would call"
	for _, c := range x.Calls {
		row(name, c.String())
		name = ""
	}
	if x.Kind == string(events.KindLoss) && x.Calls != nil {
		row("", "These calls are for a Spot slice. The switch recreate_non_spot decides about any other.")
	}
	out.WriteByte('\n')
}
