package oracle

import (
	"maps"
	"math"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/topology"
	"pitstop.internal/shared/view"
)

// Violation is a rule that was broken.
type Violation struct {
	// Rule is the rule of the design, or what else has to hold.
	Rule     string    `json:"rule"`
	At       time.Time `json:"at"`
	Workload string    `json:"workload"`
	Text     string    `json:"text"`
	// Faults is how many faults and troubles had happened by then.
	Faults int `json:"faults"`
}

// Result is what a simulation came to. Its JSON form is what simulate --json prints.
type Result struct {
	// Seed is the first of Seeds in a row.
	Seed      uint64  `json:"seed"`
	Seeds     int     `json:"seeds"`
	Days      float64 `json:"days"`
	Incidents int     `json:"incidents"`
	// Ended counts incidents by outcome, Confirmed the resumed ones by what confirmed them, Causes all by cause.
	Ended     map[string]int `json:"ended"`
	Confirmed map[string]int `json:"confirmed_by"`
	// Ends counts how incidents ended, by the last trouble of their workload before they opened.
	Ends       map[string]map[string]int `json:"ends"`
	Causes     map[string]int            `json:"causes"`
	Violations []Violation               `json:"violations"`
	// Reaction is how long each stage took, in seconds:
	//
	//   - evidence_to_decision: from the time that the first evidence gives itself to the opening of the incident; of
	//     announced maintenance from the moment at which the save was due, if that was later;
	//   - decision_to_call: from the sending of a request to the call that it led to. A request that had to wait, for an
	//     approval, the end of a pause, the window of a maintenance or capacity, is sent when that is over, or again;
	//   - call_to_ready: from the last call that was accepted to the TPU being usable;
	//   - ready_to_progress: from there to the progress that ended the incident.
	Reaction map[string]Percentiles `json:"reaction_seconds"`
	// Goodput is the share of the fleet's time in which new steps were done.
	Goodput float64 `json:"goodput"`
	// LostHours is the time without training, by cause.
	LostHours map[string]float64 `json:"lost_hours"`
	Actions   map[string]int     `json:"actions"`
	ChipHours ChipHours          `json:"chip_hours"`
	Away      Away               `json:"away"`
	// Reached are the phases and ends to which incidents came, ErrorClasses the classes of the provider's errors; missing ones
	// were not seen.
	Reached             map[string]int `json:"phases_reached"`
	ReachedMissing      []string       `json:"phases_missing"`
	ErrorClasses        map[string]int `json:"error_classes_met"`
	ErrorClassesMissing []string       `json:"error_classes_missing"`
	// Happened counts what happened to the fleet, Faults is how many faults and troubles there were in all, and Handled how
	// many messages were handled.
	Happened map[string]int `json:"happened"`
	Faults   int            `json:"faults"`
	Handled  int            `json:"handled"`
	// Braked is how often the brake held a call.
	Braked int `json:"braked"`

	// Told lists the faults and troubles, in order; Story is what happened, where it was kept.
	Told  []string     `json:"-"`
	Story *world.Story `json:"-"`
	// Interrupted says that somebody ended the run early. Days is how long it was then.
	Interrupted bool `json:"-"`

	// samples are what Reaction is made of.
	samples map[string][]time.Duration
	// away is what Away is made of.
	away []AwayOf
}

// ChipHours are the fleet's chip-hours and the lost ones. Used are those in which its TPUs could be used, by their capacity.
type ChipHours struct {
	Total float64            `json:"total"`
	Lost  float64            `json:"lost"`
	Used  map[string]float64 `json:"used"`
}

// Percentiles of a duration in seconds.
type Percentiles struct {
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Count int     `json:"count"`
}

func percentiles(samples []time.Duration) Percentiles {
	if len(samples) == 0 {
		return Percentiles{}
	}
	slices.Sort(samples)
	at := func(p int) float64 {
		return math.Round(samples[min(len(samples)-1, len(samples)*p/100)].Seconds()*10) / 10
	}
	return Percentiles{P50: at(50), P95: at(95), P99: at(99), Count: len(samples)}
}

// complete works out what follows from the counts and samples of a report.
func (r *Result) complete() {
	r.Reaction = map[string]Percentiles{}
	for stage, samples := range r.samples {
		r.Reaction[stage] = percentiles(samples)
	}
	r.Away = sumAway(r.away)
	r.ReachedMissing, r.ErrorClassesMissing = []string{}, []string{}
	for _, p := range view.Phases() {
		if r.Reached[string(p)] == 0 {
			r.ReachedMissing = append(r.ReachedMissing, string(p))
		}
	}
	for _, o := range view.Outcomes() {
		if r.Reached[string(o)] == 0 {
			r.ReachedMissing = append(r.ReachedMissing, string(o))
		}
	}
	for _, c := range reason.FailureClasses() {
		if c == reason.CannotMove || c == reason.OtherRegion {
			continue // they are our own word, and no API's
		}
		if r.ErrorClasses[string(c)] == 0 {
			r.ErrorClassesMissing = append(r.ErrorClassesMissing, string(c))
		}
	}
}

// Sum is one report of several seeds in a row. Its percentiles are those of all samples together, its goodput is the mean.
func Sum(reports []*Result) *Result {
	sum := *reports[0]
	sum.samples = map[string][]time.Duration{}
	for stage, samples := range reports[0].samples {
		sum.samples[stage] = slices.Clone(samples)
	}
	for _, r := range reports[1:] {
		sum.Seeds += r.Seeds
		sum.Incidents += r.Incidents
		sum.Faults += r.Faults
		sum.Handled += r.Handled
		sum.Braked += r.Braked
		sum.Goodput += r.Goodput
		sum.ChipHours.Total += r.ChipHours.Total
		sum.ChipHours.Lost += r.ChipHours.Lost
		sum.ChipHours.Used = added(sum.ChipHours.Used, r.ChipHours.Used)
		sum.Violations = slices.Concat(sum.Violations, r.Violations)
		sum.away = slices.Concat(sum.away, r.away)
		for _, c := range []struct{ to, from *map[string]int }{
			{&sum.Ended, &r.Ended},
			{&sum.Confirmed, &r.Confirmed},
			{&sum.Causes, &r.Causes},
			{&sum.Actions, &r.Actions},
			{&sum.Reached, &r.Reached},
			{&sum.ErrorClasses, &r.ErrorClasses},
			{&sum.Happened, &r.Happened},
		} {
			*c.to = added(*c.to, *c.from)
		}
		ends := map[string]map[string]int{}
		for _, of := range []map[string]map[string]int{sum.Ends, r.Ends} {
			for trouble, how := range of {
				ends[trouble] = added(how, ends[trouble])
			}
		}
		sum.Ends = ends
		sum.LostHours = added(sum.LostHours, r.LostHours)
		for stage, samples := range r.samples {
			sum.samples[stage] = append(sum.samples[stage], samples...)
		}
	}
	sum.Goodput /= float64(len(reports))
	sum.complete()
	return &sum
}

func added[N int | float64](a, b map[string]N) map[string]N {
	sum := maps.Clone(a)
	for k, v := range b {
		sum[k] += v
	}
	return sum
}

// decided measures from the first evidence of an incident to its opening. That maintenance is announced is no reason to do
// anything before the save is due.
func (c *Checks) decided(w seen, now time.Time) {
	if from := w.Open.First; !from.IsZero() && !from.After(now) {
		c.reaction["evidence_to_decision"] = append(c.reaction["evidence_to_decision"], now.Sub(from))
	}
}

// prompt measures from the sending of a request to the call that it led to.
func (c *Checks) prompt(k call) {
	doc, err := c.handed(k.by)
	if err != nil || doc.Open == nil {
		return
	}
	for _, r := range doc.Requests {
		saves := k.RequestID == "" && r.Action == events.ActionSave && r.Begun
		if saves || k.RequestID != "" && k.RequestID == r.ID {
			c.reaction["decision_to_call"] = append(c.reaction["decision_to_call"], c.Clock.Now().Sub(r.Sent))
			return
		}
	}
}

// Measure takes stock of the training at the end of the time that counts.
func (c *Checks) Measure(end time.Time) {
	days := end.Sub(c.Start)
	var done, total float64
	for _, f := range c.Fleet {
		t := c.Trainings[f.Name]
		steps := t.LastStep() - f.Trainer.Step
		done += float64(steps) * t.StepTakes.Hours()
		total += days.Hours()
		if a, err := topology.Parse(f.Accelerator); err == nil {
			c.chipHours += days.Hours() * float64(a.Chips)
		}
	}
	for _, g := range c.Gangs() {
		done += float64(g.LastStep()-g.Trainer.Step) * g.StepTakes.Hours()
		total += days.Hours()
		c.chipHours += days.Hours() * float64(g.Chips())
	}
	c.chipHoursUsed = c.used(end)
	if total > 0 {
		c.goodput = math.Round(1000*done/total) / 1000
	}
}

// Result is the report on a run of so many days from a seed.
func (c *Checks) Result(seed uint64, days float64) *Result {
	r := &Result{
		Seed: seed, Seeds: 1, Days: days, Incidents: c.Incidents, Ended: c.ended, Confirmed: c.confirmed, Causes: c.causes, Violations: c.Violations,
		samples: c.reaction, away: c.away, Goodput: c.goodput, LostHours: map[string]float64{}, Actions: c.actions,
		ChipHours: ChipHours{Total: math.Round(c.chipHours), Lost: math.Round(c.chipHoursLost), Used: map[string]float64{}}, Reached: c.reached, ErrorClasses: c.classes,
		Ends: c.ends, Happened: c.happen, Faults: min(c.chaos.Count, c.chaos.Limit), Handled: c.handled, Braked: c.braked, Told: c.chaos.Told, Story: c.Story,
	}
	if r.Violations == nil {
		r.Violations = []Violation{}
	}
	r.complete()
	for cause, d := range c.lost {
		r.LostHours[cause] = math.Round(d.Hours()*10) / 10
	}
	for capacity, hours := range c.chipHoursUsed {
		r.ChipHours.Used[capacity] = math.Round(hours)
	}
	for _, f := range c.Story.Faults {
		r.Violations = append(r.Violations, Violation{Rule: "simulator", Text: f, At: c.Clock.Now(), Faults: r.Faults})
	}
	return r
}
