package show

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/shared/saving"

	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/scripts/pitstop/prices"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/topology"
	"pitstop.internal/shared/view"
)

// Rehearsal is the output of check --json.
type Rehearsal struct {
	Workload string    `json:"workload"`
	Slice    string    `json:"slice"`
	Would    view.Plan `json:"would"`
	// Calls are the calls that the decisions would cause, in order.
	Calls    []string  `json:"calls"`
	Findings []finding `json:"findings"`
}

// finding is the result of one test. A good one has no way out.
type finding struct {
	Level  Level  `json:"level"`
	About  string `json:"about"`
	Text   string `json:"text"`
	WayOut string `json:"way_out,omitzero"`
}

// Level is the weight of a finding.
type Level string

// The levels. With warn something is unknown or costs time; with stop training would not come back.
const (
	Good Level = "good"
	Warn Level = "warn"
	Stop Level = "stop"
)

// Add adds a finding.
func (r *Rehearsal) Add(l Level, about, text, wayOut string) {
	r.Findings = append(r.Findings, finding{l, about, text, wayOut})
}

func (d verbs) checkCommand() *cobra.Command {
	var where deployment.Place
	var asJSON bool
	var priced string
	c := &cobra.Command{
		Use:   "check WORKLOAD",
		Short: "Rehearse the loss of a workload, and say whether training would come back",
		Long: "Rehearse the loss of a workload without changing anything. check prints Pitstop's decision, the calls that it would make,\n" +
			"and the zones in which it could create the slice. It tests the permissions of the functions, the last complete checkpoint,\n" +
			"its age and the time between two, and whether the start-up script starts training. It compares where the checkpoints and the\n" +
			"data are with where the slices are now; the metadata key " + events.MetadataDataDir + " names the directories of the data.\n" +
			"It says when the last maintenance event was, and whether autocheckpoint is on. It says whether another workload uses the checkpoint\n" +
			"directory, whose lease is there, and whether a lifecycle rule of the bucket deletes it. It also names present obstacles: a pause, an\n" +
			"open incident, a slice that is not usable. Each finding has its way out. The exit code is 1 when training would not come back.\n\n" +
			"This needs roles/datastore.viewer, roles/tpu.viewer, and roles/storage.objectViewer and roles/storage.bucketViewer on the\n" +
			"checkpoints, and the latter on the data. To test the permissions it asks Google as the functions' accounts, which needs\n" +
			"roles/iam.serviceAccountTokenCreator on them. It says which tests it could not make.\n\n" +
			"Of a Job of GKE it says what Kubernetes brings back by itself, what Pitstop does once the Job has failed, and what a person has to do.",
		Args: cli.OneWorkload(),
		RunE: func(c *cobra.Command, args []string) error {
			list, err := prices.Read(priced)
			if err != nil {
				return err
			}
			l, w, err := d.Workload(c.Context(), where, args[0])
			if err != nil {
				return err
			}
			policies, known, err := d.Policies(c.Context(), l)
			if err != nil {
				return err
			}
			r, err := d.checkRecovery(c.Context(), where, l, w, policies.For(c.Context(), w.Label), known, list)
			if err != nil {
				return err
			}
			if asJSON {
				if err := terminal.PrintJSON(c.OutOrStdout(), r); err != nil {
					return err
				}
			} else {
				printRehearsal(terminal.NewPrinter(c.OutOrStdout(), false), r)
			}
			if slices.ContainsFunc(r.Findings, func(f finding) bool { return f.Level == Stop }) {
				return cli.ErrFailed
			}
			return nil
		},
	}
	where.Flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().StringVar(&priced, "prices", "", "a file of prices, in dollars for a chip-hour; see incident")
	cli.NamesFile(c.Flags(), "prices")
	return c
}

// checkRecovery tests whether training would come back after the loss of its first usable slice.
func (d verbs) checkRecovery(
	ctx context.Context, where deployment.Place, l *ledger.Ledger, w deployment.Workload, p policy.Policy, known bool, list prices.List,
) (*Rehearsal, error) {
	i := slices.IndexFunc(w.Slices, func(s view.Slice) bool { return !s.Released && s.Condition == evidence.Ready })
	if i < 0 { // nothing is left to lose
		i = slices.IndexFunc(w.Slices, func(s view.Slice) bool { return !s.Released })
	}
	if i < 0 {
		return nil, cli.Usage("all slices of %s are left to their owner: Pitstop would do nothing", w.ID)
	}
	s := w.Slices[i]
	if isJob(w) {
		return d.checkJob(ctx, l, w, s, p, known)
	}
	r := &Rehearsal{Workload: w.ID, Slice: s.Name, Findings: []finding{}}
	r.allowed(w, p, known)
	if p.Unreadable == "" {
		r.decision(w, w.Document.IfLost(p, s.Name, d.Now()))
	}
	r.spending(w.Document.Spending(p, d.Now()))
	pause, err := l.Pause(ctx)
	if err != nil {
		return nil, err
	}
	r.stands(w, pause, d.Now())
	all, err := d.Workloads(ctx, l, nil)
	if err != nil {
		return nil, err
	}
	r.labels(w, all)
	r.AddSharedDirectories(w, all)
	specs, err := r.specifications(ctx, l, w, p, list)
	if err != nil {
		return nil, err
	}
	looking, end := google.OptionalQuestion(ctx)
	shown, err := d.ListSlices(looking, []deployment.Workload{w})
	unread := end(err)
	r.known(w, shown[w.ID], unread)
	found := d.Directories(ctx, w, shown[w.ID])
	if len(specs) > 0 {
		if err := d.places(ctx, l, r, w, s, p, found, list); err != nil {
			return nil, err
		}
	}
	r.AddRegions(w, found, p.EgressPrice)
	r.AddLifecycleRules(w, found)
	if unread != nil && !isLegacy(w) {
		r.Add(Warn, "region", "check cannot read whether the metadata names the training's data ("+events.MetadataDataDir+"), so it compared no data",
			"ask for roles/tpu.viewer on "+w.Project)
	}
	price, known := list.Of(s.Accelerator, s.Capacity == events.Spot)
	if !known {
		price = p.ChipHourPrice
	}
	if err := d.saves(ctx, l, r, w, price); err != nil {
		return nil, err
	}
	if err := d.maintenance(ctx, l, r, w, p, shown[w.ID], unread); err != nil {
		return nil, err
	}
	d.permissions(ctx, where, r, w, specs, p)
	return r, nil
}

// decision tests what would follow from the loss.
func (r *Rehearsal) decision(w deployment.Workload, would view.Plan) {
	r.Would = would
	switch {
	case would.Outcome == view.Escalated:
		r.Add(Stop, "decision", would.Reason, would.Advice)
	case would.Outcome == "" && len(would.Decisions) == 0 && w.Incident == nil && !w.Training.Finished:
		wayOut := "pitstop status " + w.Name + " shows its state"
		if w.Need != nil {
			wayOut = w.Need.Text
		}
		r.Add(Stop, "decision", strings.TrimSuffix("Pitstop would do nothing: "+would.Reason, ": "), wayOut)
	}
}

// specifications tests those of the slices, and returns them.
func (r *Rehearsal) specifications(ctx context.Context, l *ledger.Ledger, w deployment.Workload, p policy.Policy, list prices.List) (specs [][]byte, err error) {
	for _, s := range w.Slices {
		if s.Released {
			continue
		}
		spec, err := l.Spec(ctx, s.Spec)
		if errors.Is(err, ledger.ErrNotFound) || s.Spec == "" {
			r.Add(Stop, "specification", "Pitstop has never read "+s.Name+", so it cannot create it again",
				"wait until it is usable and patrol has read it")
			continue
		}
		if err != nil {
			return nil, err
		}
		specs = append(specs, spec)
		r.startUp(s, spec, p, list)
	}
	return specs, nil
}

// allowed tests the policy.
func (r *Rehearsal) allowed(w deployment.Workload, p policy.Policy, known bool) {
	attach := "pitstop attach " + w.Name + " --policy spot"
	if isLegacy(w) {
		attach = "create it again with the label " + events.LabelPolicy + "=spot: a legacy node keeps its labels"
	}
	switch {
	case p.Unreadable != "":
		r.Add(Stop, "policy", "check cannot read it: "+p.Unreadable, "repair the file, or ask for roles/storage.objectViewer on it")
	case w.Label == "":
		r.Add(Stop, "policy", "without the label "+events.LabelPolicy+" Pitstop only watches it", attach)
	case p.Unknown:
		r.Add(Stop, "policy", "there is no policy "+w.Label+", so Pitstop only watches it", "add it to the policy file, or attach another")
	case p.Switches.WatchOnly():
		r.Add(Stop, "policy", cli.LimitsText(p.Switches, p.Limits), "allow the actions in the deployment and in the policy")
	default:
		r.Add(Good, "policy", cli.LimitsText(p.Switches, p.Limits), "")
	}
	if !known {
		r.Add(Warn, "policy", "the ledger does not say yet what the deployment allows", "wait for patrol's next sweep, within 15 minutes")
	}
}

// isLegacy reports whether a workload trains on legacy nodes. These have no metadata, and their labels never change.
func isLegacy(w deployment.Workload) bool {
	return slices.ContainsFunc(w.Slices, func(s view.Slice) bool { return s.Legacy && !s.Released })
}

// spending tests what is left of the budget.
func (r *Rehearsal) spending(s *view.Spending) {
	switch {
	case s == nil:
	case s.RunsLow():
		r.Add(Warn, "budget", s.String(), "approve the replacements, or raise spend_at_most in the policy")
	default:
		r.Add(Good, "budget", s.String(), "")
	}
}

// stands tests for present obstacles.
func (r *Rehearsal) stands(w deployment.Workload, all *evidence.Pause, now time.Time) {
	if all.Holds(now) {
		r.Add(Stop, "pause", "everything is paused "+PausedText(all), "pitstop resume --all")
	}
	if w.Pause.Holds(now) {
		r.Add(Stop, "pause", "it is paused "+PausedText(w.Pause), "pitstop resume "+w.Name)
	}
	again := "pitstop retry " + w.Name
	if in := w.Incident; in != nil {
		again = "pitstop incident " + in.ID
		r.Add(Stop, "incident", in.ID+" is open: "+terminal.CauseText(in.Cause)+", "+string(in.Phase), again+"; call check again after its end")
	}
	for _, s := range w.Slices {
		switch waits := waitsSince(s); {
		case s.Released:
		case waits != "":
			r.Add(Stop, "slice", s.Name+" is "+cmp.Or(s.State, string(s.Condition))+", "+waits+"; nothing follows but reminders",
				"look at it: "+kubectlDescribe(w, s))
		case s.Condition != evidence.Ready:
			r.Add(Stop, "slice", s.Name+" is "+cmp.Or(s.State, string(s.Condition), "not read yet")+" already", again)
		}
	}
}

// known compares what Pitstop knows of the slices with what the API shows now.
func (r *Rehearsal) known(w deployment.Workload, shown []deployment.SliceShown, unread error) {
	const wayOut = "patrol reads the API every minute: pitstop status says whether it does; then call check again"
	var same []string
	for _, s := range w.Slices {
		if s.Released || s.Condition == evidence.Gone {
			continue
		}
		i := slices.IndexFunc(shown, func(o deployment.SliceShown) bool { return o.Slice == s.Name })
		knows := ", and Pitstop knows it as " + cmp.Or(s.State, string(s.Condition), "not read yet")
		switch {
		case i < 0 && unread != nil:
			r.Add(Warn, "the API", "check cannot compare "+s.Name+" with what the API shows: "+cli.OneLine(unread), "ask for roles/tpu.viewer on "+w.Project)
		case i < 0:
			r.Add(Stop, "the API", "it shows no "+s.Name+" in "+s.Zone+knows, wayOut)
		case shown[i].Incarnation != s.Incarnation:
			r.Add(Stop, "the API", "it shows another "+s.Name+" than the one that Pitstop knows: somebody has created it anew", wayOut)
		case shown[i].State != s.State:
			r.Add(Stop, "the API", "it shows "+s.Name+" as "+shown[i].State+knows, wayOut)
		default:
			same = append(same, s.Name+" is "+s.State)
		}
	}
	if len(same) > 0 {
		r.Add(Good, "the API", "it shows what Pitstop knows: "+strings.Join(same, ", "), "")
	}
}

// labels finds slices whose label names another workload than their own: slices of this workload, or slices that name it.
func (r *Rehearsal) labels(w deployment.Workload, all []deployment.Workload) {
	for _, o := range all {
		for _, s := range o.Slices {
			switch {
			case s.Claims == "" || s.Released:
			case o.ID == w.ID:
				r.Add(Warn, "label", s.Name+" has the label "+events.LabelWorkload+"="+s.Claims+", but does not belong to that workload",
					"remove the label; or, if it belongs there, create it again with the checkpoint directory, policy and service account of "+s.Claims)
			case o.Project == w.Project && s.Claims == fleet.LabelValue(w.Name):
				r.Add(Warn, "label", "the label of "+s.Name+" in "+s.Zone+" names this workload, but it belongs to "+o.ID,
					"pitstop check "+o.Name+" says what to do")
			}
		}
	}
}

// startUp tests whether training begins on a new machine by itself.
func (r *Rehearsal) startUp(s view.Slice, spec []byte, p policy.Policy, list prices.List) {
	up, err := cloudtpu.StartUpOf(spec)
	switch {
	case err != nil:
		r.Add(Stop, "start-up", s.Name+": "+cli.OneLine(err), "create it again by hand; patrol then reads it again")
	case up.Legacy:
		r.Add(Warn, "start-up", s.Name+" is a legacy node: training runs on your own machine, and may not connect to a new node",
			"connect to the node by its name once it is ready: its address may change")
	case !up.Script:
		price, ok := list.Of(s.Accelerator, s.Capacity == events.Spot)
		if !ok {
			price = p.ChipHourPrice
		}
		at := fmt.Sprintf("%d chip-hours an hour", s.Chips)
		if price > 0 {
			at += fmt.Sprintf(", $%.2f an hour", price*float64(s.Chips))
		}
		r.Add(Stop, "start-up", s.Name+" has no start-up script: a new slice would be empty, at "+at,
			"start training in the metadata key startup-script; until then Pitstop asks a person before it recreates the slice")
	case up.URL != "" && !up.Crew:
		r.Add(Warn, "start-up", s.Name+": startup-script-url names its start-up script, which check does not read",
			"read it yourself: it has to start training")
	case !up.Crew:
		r.Add(Warn, "start-up", s.Name+" has a start-up script without pitcrew, so check cannot see whether it starts training",
			"start training with pitcrew run -- ..., which also admits, saves and reports")
	default:
		r.Add(Good, "start-up", s.Name+": its start-up script starts pitcrew", "")
	}
}

// terms are what an hour of a slice costs in a place, as far as that is known, and when the place may be asked.
func terms(s *incident.Slot, at view.Place, p policy.Policy, list prices.List) (text string) {
	is := s.In(at)
	price, known := list.Of(is.Accelerator, is.Capacity == events.Spot)
	if !known {
		price = s.PriceIn(p, at)
	}
	if shape, err := topology.Parse(is.Accelerator); err == nil && price > 0 {
		text = fmt.Sprintf(", at $%.2f an hour", price*float64(shape.Chips))
	}
	if after := s.After(p, at); after > 0 {
		text += ", once all places before it have refused for " + events.Span(after)
	}
	return text
}

// places tests each place in which the slice may be created, and adds the calls.
func (d verbs) places(
	ctx context.Context, l *ledger.Ledger, r *Rehearsal, w deployment.Workload, s view.Slice, p policy.Policy, all []deployment.Directory, list prices.List,
) error {
	ref := w.Ref(s.Name)
	what := "node " + s.Name
	if s.Group != "" {
		what = "queued resource " + s.Group + ", with every node in it"
	}
	calls := func(a events.Action) bool {
		return slices.ContainsFunc(r.Would.Calls, func(c view.Planned) bool { return c.Action == a })
	}
	acts := calls(events.ActionCreate)
	if calls(events.ActionDelete) { // which an open incident may have called already
		r.Calls = append(r.Calls, "read "+ref.String(), "delete "+what+" in "+s.Zone)
	}
	var saved deployment.Directory
	if i := slices.IndexFunc(all, func(f deployment.Directory) bool { return f.Holds == deployment.HoldsCheckpoints }); i >= 0 {
		saved = all[i]
	}
	home, possible, may, but := topology.Region(s.Zone), 0, "Pitstop may create it there", ""
	if sw := s.Replaces(); p.Switches.Level(sw) == policy.No {
		may, but = "the order fits", ", but the switch "+string(sw)+" is no"
	}
	for _, at := range w.Document.PlacesFor(p, s.Name, d.Now()) {
		zone := at.String()
		_, unfit, err := fleet.Order(ctx, l, w.Document, *w.Document.Slice(s.Name), at, p)
		if errors.Is(err, ledger.ErrNotFound) {
			continue // there is a finding about its specification already
		}
		if err != nil {
			return err
		}
		if f := provider.Failure(unfit); f != nil {
			advice := "replace it with something that the zone has, or remove the zone from the policy"
			switch f.Code {
			case reason.CodeOtherShape:
				advice = "add the missing part, or remove the shape from the policy"
			case reason.CodeOtherCapacity:
				advice = "remove the capacity from the policy"
			default:
			}
			r.Add(Warn, "zone "+zone, cli.OneLine(errors.New(f.Message)), advice)
			continue
		}
		if region := topology.Region(at.Zone); region == home || len(all) == 0 {
			r.Add(Good, "zone "+zone, may+terms(w.Document.Slice(s.Name), at, p, list)+but, "")
		} else if !r.otherRegion("zone "+zone, region, w, p, saved, dataFrom(w, all, region, p.EgressPrice)) {
			continue
		}
		possible++
		if acts {
			r.Calls = append(r.Calls, "create "+what+" in "+zone+map[bool]string{true: ", if the one before refuses"}[possible > 1])
		}
	}
	for _, left := range w.Document.LeftZones(p, d.Now()) {
		r.Add(Warn, "zone "+left.Zone, left.Words(), "wait, or set leave_zone_for in the policy")
	}
	if possible == 0 {
		r.Add(Stop, "zones", "Pitstop can create it in no zone", "see above")
	} else if acts && w.Directory != "" {
		r.Calls = append(r.Calls, "write the lease "+checkpoint.Join(w.Directory, checkpoint.LeaseName))
	}
	return nil
}

// otherRegion tests a zone in another region than that of the slice now, and reports whether Pitstop may create the slice there. Read
// says which data it would read from elsewhere.
func (r *Rehearsal) otherRegion(about, region string, w deployment.Workload, p policy.Policy, saved deployment.Directory, read string) bool {
	far := saved.URI != "" && saved.Unknown == nil && !saved.At.Covers(region)
	l, wayOut := Good, ""
	if read != "" {
		l, wayOut = Warn, "remove the zone from the policy, or copy the data into a bucket in "+region
	}
	switch {
	case saved.Unknown != nil && !p.OtherRegions:
		r.Add(Warn, about, "the location of the checkpoints is not known, so the zone counts as another region: "+cli.OneLine(saved.Unknown),
			"let the function recreate read the bucket's location, or set other_regions: yes")
		return false
	case far && !p.OtherRegions:
		r.Add(Warn, about, "the checkpoints are in "+saved.At.String()+"; "+w.Document.Egress(p.EgressPrice),
			"set other_regions: yes in the policy, or remove the zone")
		return false
	case far:
		r.Add(l, about, "Pitstop may create it there; the checkpoints are in "+saved.At.String()+"; "+w.Document.Egress(p.EgressPrice)+read, wayOut)
	default:
		r.Add(l, about, "Pitstop may create it there"+read, wayOut)
	}
	return true
}

// maintenance tests what maintenance of the slices would cost, and says when the last was.
func (d verbs) maintenance(
	ctx context.Context, l *ledger.Ledger, r *Rehearsal, w deployment.Workload, p policy.Policy, shown []deployment.SliceShown, unread error,
) error {
	off, on, err := AutocheckpointOff(ctx, l, w)
	if err != nil {
		return err
	}
	if len(on) > 0 {
		r.Add(Good, "autocheckpoint", "it is on for "+NamesOf(on)+": "+deployment.AutocheckpointDoes, "")
	}
	if len(off) > 0 {
		r.Add(Warn, "autocheckpoint", "it is off for "+NamesOf(off)+": "+deployment.AutocheckpointCost, SwitchesOn(w, off, p))
	}
	if unread != nil {
		r.Add(Warn, "maintenance", "check cannot read when the last maintenance event was: "+cli.OneLine(unread), "ask for roles/tpu.viewer on "+w.Project)
	}
	for _, s := range w.Slices {
		if text := maintainedText(shown, s.Name, d.Now()); text != "" {
			r.Add(Good, "maintenance", s.Name+": "+text, "")
		}
	}
	return nil
}

// saves tests the checkpoint that training would resume from, how often it saves, and whether a crew admits and saves.
func (d verbs) saves(ctx context.Context, l *ledger.Ledger, r *Rehearsal, w deployment.Workload, price float64) error {
	if isLegacy(w) {
		r.Add(Warn, "checkpoint", "a legacy node names no directory and takes no request to save; only its health shows that it is back",
			"save about every hour, on the machine where training runs")
		return nil
	}
	switch {
	case w.Training.Finished:
		r.Add(Warn, "training", "it is finished, so Pitstop brings nothing back", "")
	case w.Training.Seen.IsZero():
		r.Add(Warn, "crew", "no crew has reported: training does not save on request, and only checkpoints show its progress",
			"start training with pitcrew run -- ...")
	default:
		r.Add(Good, "crew", training(w.Workload, d.Now()), "")
	}
	if w.Directory == "" {
		if w.Provider != provider.GKE { // of a Job it is told already
			r.Add(Warn, "checkpoint", "the checkpoint directory is not known, so Pitstop cannot verify a checkpoint or write a lease",
				"set the metadata key "+events.MetadataCheckpointDir+" on the TPU")
		}
		return d.interval(ctx, l, r, w, saving.Unsaved(w.Workload), price)
	}
	d.lease(ctx, r, w)
	looking, end := google.OptionalQuestion(ctx)
	found, err := checkpoint.Verify(looking, d.Checkpoints, w.Directory, checkpoint.Want{})
	err = end(err)
	var missing *checkpoint.Missing
	since := saving.Unsaved(w.Workload)
	switch age := d.Now().Sub(found.At); {
	case errors.As(err, &missing):
		r.Add(Stop, "checkpoint", cli.OneLine(err),
			"save once, and compare the checkpoint directory with that of training, which would begin at its first step")
	case err != nil:
		r.Add(Warn, "checkpoint", "check cannot read it: "+cli.OneLine(err), "ask for roles/storage.objectViewer on the bucket")
	case age > saving.OftenEnough:
		if w.Incident == nil {
			since = max(since, min(age, d.Now().Sub(resumed(w))))
		}
		r.Add(Warn, "checkpoint", "the last complete one is step "+events.Number(found.Step)+", "+events.Span(age)+" old",
			"save more often: training would repeat these steps")
	default:
		r.Add(Good, "checkpoint", "the last complete one is step "+events.Number(found.Step)+", "+events.Span(age)+" old, at "+found.URI, "")
	}
	return d.interval(ctx, l, r, w, since, price)
}

// interval tests how often training saves. Since is how long it runs without a new checkpoint, and price that of a chip-hour.
func (d verbs) interval(ctx context.Context, l *ledger.Ledger, r *Rehearsal, w deployment.Workload, since time.Duration, price float64) error {
	every, atLeast := saving.Every(w.Workload, since)
	if every == 0 || w.Training.Finished {
		return nil
	}
	h, err := newHistorian(l).of(ctx, w, d.Now())
	if err != nil {
		return err
	}
	s := saving.Of(w.Workload, every, atLeast, h, price)
	if !s.Seldom() && !s.Advises() {
		r.Add(Good, "interval", s.State(), "")
		return nil
	}
	do, because := s.Advice()
	text := s.State()
	if because != "" {
		text += "; " + because
	}
	r.Add(Warn, "interval", text, do)
	return nil
}

// permissions tests the permissions of the functions that act, as their accounts.
func (d verbs) permissions(ctx context.Context, where deployment.Place, r *Rehearsal, w deployment.Workload, specs [][]byte, p policy.Policy) {
	all, err := d.Grants()
	if err != nil {
		r.Add(Warn, "permissions", "not tested: "+cli.OneLine(err), "")
		return
	}
	var allowed []string
	for _, s := range policy.All() {
		if p.Switches.Level(s) != policy.No {
			allowed = append(allowed, string(s))
		}
	}
	bucket, _, _ := strings.Cut(strings.TrimPrefix(w.Directory, "gs://"), "/")
	var accounts []string
	for _, spec := range specs {
		if up, err := cloudtpu.StartUpOf(spec); err == nil && up.Account != "" && !slices.Contains(accounts, up.Account) {
			accounts = append(accounts, up.Account)
		}
	}
	for _, function := range []string{"checkpoint", "recovery", "recreate"} {
		account := "pitstop-" + where.Prefix + function + "@" + where.Project + ".iam.gserviceaccount.com"
		test := func(on, place string, ask func(context.Context, string, string, []string) ([]string, error)) {
			want := deployment.NeededPermissions(all, function, on, allowed)
			if len(want) == 0 {
				return
			}
			asking, end := google.OptionalQuestion(ctx)
			has, err := ask(asking, account, place, want)
			err = end(err)
			lacks := slices.DeleteFunc(slices.Clone(want), func(p string) bool { return slices.Contains(has, p) })
			switch {
			case err != nil:
				r.Add(Warn, "permissions", function+" on "+place+": not tested: "+cli.OneLine(err),
					"grant yourself roles/iam.serviceAccountTokenCreator on "+account)
			case len(lacks) > 0:
				r.Add(Stop, "permissions", function+" lacks "+strings.Join(lacks, ", ")+" on "+place,
					"name it in Terraform's variables and apply, or grant "+roles(all, function, lacks)+" to "+account)
			default:
				r.Add(Good, "permissions", fmt.Sprintf("%s has all %d on %s", function, len(want), place), "")
			}
		}
		test("watched projects", w.Project, d.Permissions.OnProject)
		if strings.HasPrefix(w.Directory, "gs://") {
			test("checkpoint_buckets", bucket, d.Permissions.OnBucket)
		}
		for _, a := range accounts {
			test("tpu_service_accounts", a, d.Permissions.OnAccount)
		}
	}
}

// roles are the roles with the permissions that an account lacks.
func roles(all []deployment.Grant, account string, lacks []string) string {
	var roles []string
	for _, g := range all {
		if g.Account == account && slices.Contains(lacks, g.Permission) && !slices.Contains(roles, g.Role) {
			roles = append(roles, g.Role)
		}
	}
	return strings.Join(roles, ", ")
}

func printRehearsal(p *terminal.Printer, r *Rehearsal) {
	terminal.Print(p.Out, p.Paint(terminal.Bold, r.Workload)+"  if "+r.Slice+" died now: "+r.Would.String())
	for i, c := range r.Calls {
		terminal.Print(p.Out, fmt.Sprintf("  call %d    %s", i+1, c))
	}
	colours := map[Level]string{Good: terminal.Green, Warn: terminal.Yellow, Stop: terminal.Red}
	for _, f := range r.Findings {
		terminal.Print(p.Out, "  "+p.Paint(colours[f.Level], string(f.Level))+"      "+f.About+": "+f.Text)
		if f.WayOut != "" {
			terminal.Print(p.Out, "            you: "+f.WayOut)
		}
	}
}
