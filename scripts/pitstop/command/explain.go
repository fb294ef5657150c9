package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/scenario"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/tpu"
)

// explained is what explain --json prints for each entry.
type explained struct {
	// Index is the place of the entry, from 1.
	Index   int    `json:"index"`
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Rank    string `json:"rank"`
	LeadsTo string `json:"leads_to"`
	Ignored bool   `json:"ignored"`
	Reason  string `json:"reason"`
	// Code is why nothing follows, or nothing would be done, in one word.
	Code incident.Code `json:"code"`
	// Calls are what would be called in the end, as far as an entry alone can tell: of a Spot slice for which all goes well.
	Calls []incident.Planned `json:"calls,omitempty"`
	Error string             `json:"error"`
}

func explainCommand() *cobra.Command {
	var asJSON bool
	var policyFlag string
	var allow allowing
	c := &cobra.Command{
		Use:   "explain [FILE...]",
		Short: "Say what log entries mean to Pitstop, or why they are ignored",
		Long: "Say for each log entry what Pitstop makes of it: kind, subject, how far it is believed, what it leads to under the policy,\n" +
			"or in plain words why it is ignored. Files hold what gcloud logging read --format=json writes; - is standard\n" +
			"input, and so is no file where something is piped in.",
		RunE: func(c *cobra.Command, files []string) error {
			p, err := readPolicy(policyFlag)
			if err != nil {
				return err
			}
			if p.allow, err = allow.switches(); err != nil {
				return err
			}
			switch {
			case len(files) == 0 && terminal(c.InOrStdin()):
				return usage("explain: name the files with your log entries; - is standard input")
			case len(files) == 0:
				files = []string{"-"}
			}
			return explain(c.Context(), files, c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr(), p, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per entry")
	c.Flags().StringVar(&policyFlag, "policy", "", "a preset (watch, spot, reserved), or FILE, or FILE:NAME")
	allow.flag(c)
	return c
}

// explanations is what is printed of a run of entries.
type explanations struct {
	out, err bytes.Buffer
	failed   bool
	count    census
}

func explain(ctx context.Context, files []string, in io.Reader, out, errOut io.Writer, p chosenPolicy, asJSON bool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	chosen := p.policy()
	work := newPool(ctx, func(items []scenario.Item, first int, x *explanations) {
		x.out.Reset()
		x.err.Reset()
		x.failed, x.count = false, census{}
		for i, it := range items {
			x.add(first+i+1, it, chosen, asJSON)
		}
	})
	bar := newProgress(files, out, errOut)
	all := work.stream(ctx, files, in, bar, underWay(1))
	failed := false
	var count census
	for x := all.next(ctx); x != nil; x = all.next(ctx) {
		failed = failed || x.failed
		count.join(x.count)
		_, err := x.out.WriteTo(out)
		if err == nil {
			_, err = x.err.WriteTo(errOut)
		}
		if err != nil {
			return err
		}
	}
	bar.done()
	if !asJSON && count.all > 1 {
		tell(out, count.String())
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case failed:
		return errFailed
	case count.all == 0:
		noEntries(errOut)
	}
	return nil
}

// census counts entries by what became of them; it keeps nothing else of them.
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
func (x *explanations) add(n int, it scenario.Item, p policy.Policy, asJSON bool) {
	e, err := explained{Index: n}, it.Err
	if err == nil {
		e, err = explainEntry(n, it.Record, p)
	}
	if err != nil {
		x.failed = true
		e.Error = oneLine(err)
	}
	x.count.add(e)
	if !asJSON {
		explainLine(&x.out, &x.err, it.Record, e)
		return
	}
	if err := json.MarshalWrite(&x.out, e); err != nil {
		x.failed = true
		return
	}
	x.out.WriteByte('\n')
}

func explainEntry(n int, r scenario.Record, p policy.Policy) (explained, error) {
	e, err := events.Read(r.Raw)
	if f := tpu.Audited(e.Call); f != nil {
		e.Call.Message = f.Message + " (" + strings.ReplaceAll(string(f.Class), "_", " ") + ")"
	}
	x := explained{Index: n, Kind: string(e.Kind), Subject: e.Subject.String(), Rank: e.Rank.String(), Reason: e.Describe()}
	switch {
	case err != nil:
		return x, fmt.Errorf("%s: %w", r.Where(), err)
	case e.Kind == events.KindForeign && e.Ignored != "":
		x.Ignored, x.Reason, x.Code = true, e.Ignored, incident.CodeNothing
		if e.PubSub {
			return x, nil
		}
		return x, fmt.Errorf("%s: %s", r.Where(), e.Ignored)
	case e.Ignored != "":
		x.Ignored, x.Reason, x.Code = true, e.Noted(), incident.CodeNothing
		return x, nil
	}
	x.LeadsTo, x.Code = leadsTo(e, p)
	x.Calls = rehearsed(e, p)
	return x, nil
}

// leadsTo says what follows from an entry about a workload that trains in peace, in plain words, and, in one, which refusal of
// the policy keeps the first part of it from being done.
func leadsTo(e events.Entry, p policy.Policy) (text string, code incident.Code) {
	asked := 0
	text = follows(e, p, func(s policy.Switch, what string) string {
		first := asked == 0
		asked++
		refused := func(c incident.Code) {
			if first {
				code = c
			}
		}
		switch p.Switches.Level(s) {
		case policy.Yes:
			return what
		case policy.Ask:
			refused(incident.CodePolicyAsk)
			return what + ", once a person approves (" + (incident.Workload{}).Forbids(s, policy.Ask, p) + ")"
		case policy.No:
		}
		if p.Switches.WatchOnly() {
			refused(incident.CodeWatchOnly)
		} else {
			refused(incident.CodePolicyNo)
		}
		return "nothing is done (" + (incident.Workload{}).Forbids(s, policy.No, p) + "); it would " + what
	})
	return text, code
}

func follows(e events.Entry, p policy.Policy, does func(policy.Switch, string) string) string {
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
			return "the notice is kept; without a time nothing is asked before the maintenance begins"
		}
		if e.Notice.CanReschedule && p.Switches.EarlyMaintenance != policy.No && p.Switches.RequestCheckpoint != policy.No {
			return "an incident, where the size of the slice allows early maintenance and a crew can save: " +
				does(policy.EarlyMaintenance, "ask the training to save now, and start the maintenance right after it")
		}
		lead := cmp.Or(p.Lead, policy.DefaultLead) // until more is measured
		return fmt.Sprintf("the notice is kept; at %s: %s", e.Notice.WindowStart.Add(-lead).UTC().Format("2006-01-02 15:04 UTC"),
			does(policy.RequestCheckpoint, "ask the training to save"))
	case events.KindLoss:
		const again = "delete it and create it again"
		return "an incident: look at the API; if the slice is lost and Spot, " + does(policy.Recreate, again) +
			"; if it is not Spot, wait for Google's own recovery, then " + does(policy.RecreateNonSpot, again)
	case events.KindBack, events.KindLine:
		return "a look at the slice, if an incident waits for it"
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

// rehearsed are the calls to which an entry leads, were all of them allowed. What the entry does not name stands in angle
// brackets.
func rehearsed(e events.Entry, p policy.Policy) []incident.Planned {
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
	if group, _, ok := e.Subject.Group(); ok && name == "" {
		name = "<the slice of " + group + ">"
	}
	if name == "" {
		return nil
	}
	w := incident.New(e.Subject.Project, name, tpu.ProviderName)
	w.Directory = "gs://<" + events.MetadataCheckpointDir + ">"
	life := events.Incarnation{Zone: e.Subject.Zone, ID: "the one that is there"}
	w.Slices = []incident.Slice{{
		Name: name, Zone: e.Subject.Zone, QueuedResource: e.Subject.QueuedResource, Spot: true, Spec: "its own", Incarnation: life, Condition: incident.Ready,
	}}
	switch {
	case e.Kind == events.KindLoss:
		w.Slices[0].Condition = incident.Lost
		calls, _ := w.Replacement(p, name)
		return calls
	case e.Kind == events.KindNotice && e.Notice.Status == events.NoticeOngoing:
		return w.Saving()
	case e.Kind == events.KindNotice && e.Notice.Status == events.NoticePending && !e.Notice.WindowStart.IsZero():
		calls := w.Saving()
		if e.Notice.CanReschedule {
			calls = append(calls, w.Maintaining(name)...)
		}
		return calls
	case e.Kind == events.KindCrew:
		return w.Restarting()
	}
	return nil
}

func callLeadsTo(c events.Call) string {
	switch {
	case c.Code != 0:
		return "a look at the slice, if an incident waits for it: the call changed nothing"
	case events.Google(c.Principal):
		return "a look at the slice, if an incident waits for it: Google itself made the call"
	}
	return "the owner's word: an incident on this slice ends released, unless Pitstop itself made the call"
}

func crewLeadsTo(r events.Report, does func(policy.Switch, string) string) string {
	switch r {
	case events.ReportStarted, events.ReportProgress:
		return "progress is kept; it ends an incident whose saved step it passes"
	case events.ReportSaved:
		return "the checkpoint is looked at before it counts, if an incident asked for it"
	case events.ReportRefused:
		return "an incident that asked for the save goes on without it"
	case events.ReportExited:
		return "an incident: the crew restarts the training within its own budget; Pitstop waits for progress"
	case events.ReportGaveUp:
		return "an incident; once the crew's verdict says the same: " +
			does(policy.Restart, "ask the crew for a new attempt, three times at the most")
	case events.ReportFinished:
		return "it is noted; when a slice is lost, the crew's verdict decides whether anything is brought back"
	case events.ReportNotice:
		return "the same as the notice itself, but it may start a save or a look and nothing more"
	}
	return ""
}

func explainLine(out, errOut *bytes.Buffer, r scenario.Record, x explained) {
	lines := func(b *bytes.Buffer, parts ...string) {
		for _, p := range parts {
			b.WriteString(p)
		}
		b.WriteByte('\n')
	}
	switch {
	case x.Error != "":
		lines(errOut, "pitstop: ", x.Error)
	case x.Ignored && !events.Kind(x.Kind).Known():
		lines(out, r.Where(), "\n  ignored: ", x.Reason, "\n")
	case x.Ignored:
		lines(out, r.Where(), "\n  ignored: ", x.Reason, "\n  kind     ", x.Kind, " (", x.Rank, ")\n  subject  ", x.Subject, "\n")
	default:
		lines(out, r.Where(), "\n  ", x.Reason, "\n  kind     ", x.Kind, " (", x.Rank, ")\n  subject  ", x.Subject, "\n  leads to ", withCode(x.LeadsTo, string(x.Code)))
		for i, c := range x.Calls {
			head := "           "
			if i == 0 {
				head = "  calls    "
			}
			lines(out, head, c.String())
		}
		lines(out)
	}
}
