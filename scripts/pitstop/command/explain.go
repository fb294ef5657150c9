package main

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/scenario"
	"pitstop.internal/shared/policy"
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
	Error   string `json:"error"`
}

func explainCommand() *cobra.Command {
	var asJSON bool
	var policyFlag string
	c := &cobra.Command{
		Use:   "explain [FILE...]",
		Short: "Say what log entries mean to Pitstop, or why they are ignored",
		Long: "Say for each log entry what Pitstop makes of it: kind, subject, how far it is believed, what it leads to under the policy,\n" +
			"or in plain words why it is ignored. Files hold what gcloud logging read --format=json writes; - is standard input.",
		RunE: func(c *cobra.Command, files []string) error {
			p, err := readPolicy(policyFlag)
			if err != nil {
				return err
			}
			if len(files) == 0 {
				files = []string{"-"}
			}
			return explain(files, c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr(), p, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per entry")
	c.Flags().StringVar(&policyFlag, "policy", "", "a preset (watch, spot, reserved), or FILE, or FILE:NAME")
	return c
}

func explain(files []string, in io.Reader, out, errOut io.Writer, p chosenPolicy, asJSON bool) error {
	failed := false
	n := 0
	for _, name := range files {
		each(name, in, func(r scenario.Record, err error) {
			n++
			x := explained{Index: n}
			if err == nil {
				x, err = explainEntry(n, r, p)
			}
			if err != nil {
				failed = true
				x.Error = oneLine(err)
			}
			if !asJSON {
				explainLine(out, errOut, r.Where, x)
				return
			}
			line, err := json.Marshal(x)
			if err != nil {
				failed = true
				return
			}
			tell(out, string(line))
		})
	}
	if failed {
		return errFailed
	}
	if n == 0 {
		noEntries(errOut)
	}
	return nil
}

func explainEntry(n int, r scenario.Record, p chosenPolicy) (explained, error) {
	e, err := events.Read(r.Raw)
	x := explained{Index: n, Kind: string(e.Kind), Subject: e.Subject.String(), Rank: e.Rank.String(), Reason: e.Describe()}
	switch {
	case err != nil:
		return x, fmt.Errorf("%s: %w", r.Where, err)
	case e.Kind == events.KindForeign && e.Ignored != "":
		x.Ignored, x.Reason = true, e.Ignored
		if e.PubSub {
			return x, nil
		}
		return x, fmt.Errorf("%s: %s", r.Where, e.Ignored)
	case e.Ignored != "":
		x.Ignored, x.Reason = true, e.Ignored
		return x, nil
	}
	x.LeadsTo = leadsTo(e, p.policy())
	return x, nil
}

// leadsTo says what follows from an entry about a workload that trains in peace, in plain words.
func leadsTo(e events.Entry, p policy.Policy) string {
	does := func(s policy.Switch, what string) string {
		switch p.Switches.Level(s) {
		case policy.Yes:
			return what
		case policy.Ask:
			return what + ", once a person approves"
		case policy.No:
		}
		return "nothing is done (the switch " + string(s) + " is no); it would " + what
	}
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
		return fmt.Sprintf("the notice is kept; at %s: %s", e.Notice.WindowStart.Add(-p.Lead).UTC().Format("2006-01-02 15:04 UTC"),
			does(policy.RequestCheckpoint, "ask the training to save"))
	case events.KindLoss:
		return "an incident: look at the API; if the slice is lost and Spot, " + does(policy.Recreate, "delete it and create it again")
	case events.KindBack:
		return "a look at the slice, if an incident waits for it"
	case events.KindCall:
		return "the owner's word: an incident on this slice ends released, unless Pitstop itself made the call"
	case events.KindCrew:
		return crewLeadsTo(e.Crew.Report, does)
	case events.KindCanary:
		return "a note that log entries arrive"
	case events.KindForeign:
	}
	return ""
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
		return "an incident: " + does(policy.Restart, "ask the crew for a new attempt, three times at the most")
	case events.ReportFinished:
		return "the training is done; nothing is brought back any more"
	case events.ReportNotice:
		return "the same as the notice itself, but it may start a save or a look and nothing more"
	}
	return ""
}

func explainLine(out, errOut io.Writer, where string, x explained) {
	switch {
	case x.Error != "":
		tell(errOut, "pitstop: "+x.Error)
	case x.Ignored:
		tell(out, fmt.Sprintf("%s\n  ignored: %s\n", where, x.Reason))
	default:
		tell(out, fmt.Sprintf("%s\n  %s\n  kind     %s (%s)\n  subject  %s\n  leads to %s\n", where, x.Reason, x.Kind, x.Rank, x.Subject, x.LeadsTo))
	}
}
