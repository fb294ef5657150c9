package goodput

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/topology"
)

// Use is what a stretch of a workload's time was used for.
type Use string

// The uses of time. Each moment of a workload has one of them.
const (
	// Capacity: a slice is gone, and nobody has the machines for it.
	Capacity Use = "waiting_for_capacity"
	// Maintenance: Google maintains or repairs the machines.
	Maintenance Use = "maintenance"
	// Provisioning: a creation is under way that succeeded.
	Provisioning Use = "provisioning"
	// Stopped: its owner deleted, stopped or suspended it, or the training is finished.
	Stopped Use = "stopped"
	// Boarding: the machines are there, and the crew has not spoken.
	Boarding Use = "machine_to_crew"
	// Admission: the crew is there, and no attempt runs.
	Admission Use = "waiting_for_admission"
	Starting  Use = "start_to_first_step"
	Restoring Use = "restoring"
	// Productive: steps that were not done again later.
	Productive Use = "productive"
	Saving     Use = "saving"
	// Again: steps whose result was lost.
	Again Use = "done_again"
	// Hang: an attempt ran, and made no step.
	Hang    Use = "hang"
	Unknown Use = "unknown"
	// trains stands for the uses between which the crew's lines decide.
	trains Use = ""
)

// slowest orders how slices may stand: the first of a workload's slices holds up all of them.
var slowest = []Use{Capacity, Provisioning, Maintenance, Stopped, Unknown, Boarding, trains}

// Kind is what time is added up by. Spot says that a slice was ordered as Spot.
type Kind struct {
	Use         Use          `json:"use"`
	Cause       events.Cause `json:"cause"`
	Zone        string       `json:"zone"`
	Accelerator string       `json:"accelerator"`
	Spot        bool         `json:"spot"`
}

// Amount is an amount of time, by the clock and of all chips.
type Amount struct {
	Time time.Duration
	// Doubt is by how much the time may be less or more.
	Doubt time.Duration
	// Chips is the time of all chips, whether their machines were there or not.
	Chips time.Duration
	// Examples are those of its steps, where the crew tells how many a step has.
	Examples float64
}

// Add adds another amount.
func (a *Amount) Add(b Amount) {
	a.Time, a.Doubt, a.Chips, a.Examples = a.Time+b.Time, a.Doubt+b.Doubt, a.Chips+b.Chips, a.Examples+b.Examples
}

// Workload is the account of a workload. Its Spent adds up to the time from First to the end of the record.
type Workload struct {
	Project, Name string
	First         time.Time
	Spent         map[Kind]*Amount
	// Unsplit says that its crew does not tell how long saves block: they are among the productive time.
	Unsplit bool
	// Steps and Pace are the last step, and how long one takes.
	Steps int64
	Pace  time.Duration
	// Stepped counts the steps that were done, some of them again. SaveSteps are those from one save to the next, half of the last ones, as
	// far as lines of five minutes tell; 0 is not known.
	Stepped, SaveSteps int64
	// Stops counts its interruptions that are over, and Unsaved those in which it lost steps. Away is how long it stood still in them.
	Stops, Unsaved int
	Away           time.Duration
}

// Time is how much of its time a use has, or all uses.
func (w Workload) Time(uses ...Use) (sum time.Duration) {
	for k, n := range w.Spent {
		if len(uses) == 0 || slices.Contains(uses, k.Use) {
			sum += n.Time
		}
	}
	return sum
}

// Examples are those of the steps that stayed; 0 where no crew tells how many a step has.
func (w Workload) Examples() (sum float64) {
	for k, n := range w.Spent {
		if k.Use == Productive {
			sum += n.Examples
		}
	}
	return sum
}

// Interruption is a stretch in which a workload made no step that stayed.
type Interruption struct {
	Project, Workload, Zone string
	Cause                   events.Cause
	// From is when the training stood still, and To when it made its next step; zero where it made none.
	From, To time.Time
	// Away is the time between them, and Again that of the steps which were lost.
	Away, Again time.Duration
	Chips       int
}

// Lost is all that it cost, of all chips; of one where their number is not known.
func (i Interruption) Lost() time.Duration {
	return time.Duration(max(1, i.Chips)) * (i.Away + i.Again)
}

// workload is what is known of a workload by now.
type workload struct {
	Workload
	slices map[string]*machine
	// since is the end of what is in the account.
	since time.Time
	// cause is why it last stood still, and broken the interruption that has not ended. For the time rested of it the
	// workload was stopped, or nothing is known.
	cause  events.Cause
	broken *Interruption
	rested time.Duration
	training
}

// stand is how a slice stands.
type stand struct {
	use   Use
	cause events.Cause
}

// workloadOf finds the workload of a slice: its queued resource or JobSet, if that has several slices, else the slice itself. A slice
// takes the place of one with its name that does not stand any more, as in another zone.
func (a *Account) workloadOf(m *machine) *workload {
	if m.in != nil {
		return m.in
	}
	name := m.name
	if q := a.queues[key{m.project, m.zone, m.queued}]; q != nil && len(q.Nodes) > 1 {
		name = m.queued
	}
	if set := a.clusters.setOf[m.key]; set != "" {
		name = set
	}
	k := key{m.project, "", name}
	if m.isJob() {
		k.zone = m.zone
	}
	w := a.workloads[k]
	if w != nil && w.slices[m.name] != nil {
		if former := w.slices[m.name]; former.alive {
			k.zone, w = m.zone, nil // a namesake in another zone
		} else {
			m.stand, former.in = former.stand, nil
		}
	}
	if w == nil {
		w = &workload{Workload: Workload{Project: m.project, Name: name, Spent: map[Kind]*Amount{}}, slices: map[string]*machine{}, since: a.now}
		if k.zone != "" && !m.isJob() {
			w.Name += "." + k.zone
		}
		w.First = a.now
		a.workloads[k] = w
	}
	if m.stand == (stand{}) {
		m.stand.use = Unknown
	}
	if name == m.queued && w.slices[m.name] == nil && len(w.slices) > 0 {
		a.spendUntil(w, a.now)
		maps.DeleteFunc(w.slices, func(_ string, o *machine) bool { return o.queued != m.queued }) // of what had that name before
	}
	w.slices[m.name], m.in = m, w
	return w
}

// turn notes how a slice stands from a time on. How it stood until then is in the account afterwards.
func (a *Account) turn(m *machine, at time.Time, next stand) {
	if m.unnamed {
		return // whose time it is shows when its node is known
	}
	w := a.workloadOf(m)
	before, open := w.held().stand.use, w.broken
	if g := m.gap; g != nil && m.stand.use == Stopped && !g.ordered.IsZero() && at.Sub(g.deleted) <= createTakes {
		m.stand = stand{Capacity, g.Cause} // its owner deleted it to make it again
	}
	kind, spent := a.spendUntil(w, at)
	if before == Capacity && m.queued != "" && (next.use == Boarding || next.use == trains) {
		w.add(kind, Amount{Doubt: min(spent.Time, grantTakes)}) // no entry tells when there was some
	}
	m.stand = next
	switch {
	case w.phase == finished && next.use == Provisioning:
		w.phase = silent // it is to train again
	case w.phase == finished, next.use == trains, next.use == Boarding && before != trains:
		return
	}
	if before == trains || m.gap != nil && (before == Boarding || before == Unknown) {
		a.interrupted(w, at, next.cause)
	}
	if next.use == Stopped {
		w.broken = open // that its owner wants no step is no interruption
	}
}

// held is the slice that holds up a workload.
func (w *workload) held() *machine {
	var first *machine
	rank := len(slowest)
	for _, m := range w.slices {
		if r := slices.Index(slowest, m.stand.use); r < rank || r == rank && m.name < first.name {
			first, rank = m, r
		}
	}
	return first
}

// spendUntil puts the time of a workload until now into its account. That of an attempt which makes steps waits for the crew's next line.
func (a *Account) spendUntil(w *workload, at time.Time) (kind Kind, spent Amount) {
	stand := w.held().stand
	switch {
	case w.phase == finished:
		stand.use = Stopped
	case stand.use == trains && w.phase == running:
		return kind, spent
	case stand.use == trains:
		stand.use, stand.cause = phaseUses[w.phase], w.cause
	case stand.use == Boarding:
		stand.cause = w.cause
	}
	return a.spend(w, at, stand.use, stand.cause)
}

// spend puts the time of a workload until at into its account.
func (a *Account) spend(w *workload, at time.Time, use Use, cause events.Cause) (kind Kind, spent Amount) {
	m := w.held()
	kind = Kind{use, cause, m.zone, m.accelerator, m.spot}
	if use == Productive || use == Saving || use == Unknown {
		kind.Cause = ""
	}
	if !at.After(w.since) {
		return kind, spent
	}
	spent.Time = at.Sub(w.since)
	for _, s := range w.slices {
		spent.Chips += time.Duration(a.chips(s.accelerator)) * spent.Time
	}
	if w.since = at; use == Stopped || use == Unknown {
		w.rested += spent.Time
	}
	w.add(kind, spent)
	return kind, spent
}

func (w *workload) add(k Kind, more Amount) {
	if w.Spent[k] == nil {
		w.Spent[k] = &Amount{}
	}
	w.Spent[k].Add(more)
}

// move moves a part of an amount from one kind to another.
func (w *workload) move(from, to Kind, part Amount) {
	w.add(to, part)
	w.add(from, Amount{-part.Time, part.Doubt, -part.Chips, -part.Examples})
}

// part is so many of a number of equal parts.
func (a Amount) part(n, of int64) Amount {
	if n >= of {
		return a
	}
	share := func(d time.Duration) time.Duration { return time.Duration(float64(d) * float64(n) / float64(of)) }
	return Amount{share(a.Time), share(a.Doubt), share(a.Chips), a.Examples * float64(n) / float64(of)}
}

// chips is how many an accelerator type has; 0 is not known.
func (a *Account) chips(accelerator string) int {
	n, ok := a.sizes[accelerator]
	if !ok {
		if shape, err := topology.Parse(accelerator); err == nil {
			n = shape.Chips
		}
		a.sizes[accelerator] = n
	}
	return n
}

// breaks begins an interruption, unless one is under way. A cause that says more takes the place of one that says less.
func (a *Account) breaks(w *workload, at time.Time, cause events.Cause) {
	w.cause = cause
	if b := w.broken; b != nil {
		if vague(b.Cause) {
			b.Cause = cause
		}
		return
	}
	m, chips := w.held(), 0
	for _, s := range w.slices {
		chips += a.chips(s.accelerator)
	}
	w.rested = 0
	w.broken = &Interruption{Project: w.Project, Workload: w.Name, Zone: m.zone, Cause: cause, From: at, Chips: chips}
}

// mended ends the interruption of a workload.
func (a *Account) mended(w *workload, at time.Time) {
	b := w.broken
	if b == nil {
		return
	}
	w.broken = nil
	b.To, b.Away = at, max(0, at.Sub(b.From)-w.rested)
	w.Stops++
	w.Away += b.Away
	a.report.Interruptions = append(a.report.Interruptions, *b)
}

// spent are the accounts of all workloads at the end of the record, by their names.
func (a *Account) spent() []Workload {
	all := []Workload{}
	for _, w := range a.workloads {
		if len(w.slices) == 0 {
			continue
		}
		for _, m := range w.slices {
			if m.stand.use == Boarding || m.gap != nil && m.gap.asked.IsZero() {
				m.stand.use = Unknown // no crew spoke, or nobody asked for it again
			}
		}
		if w.held().stand.use == trains && w.phase == running {
			a.goesOn(w, a.now, Productive, "") // as far as is known
		}
		a.spendUntil(w, a.now)
		if b := w.broken; b != nil && w.held().stand.use != Stopped {
			b.Away = max(0, a.now.Sub(b.From)-w.rested)
			a.report.Interruptions = append(a.report.Interruptions, *b)
		}
		w.Steps, w.Pace = w.step, w.pace
		if n := len(w.apart); n > 0 {
			slices.Sort(w.apart)
			w.SaveSteps = w.apart[n/2]
		}
		all = append(all, w.Workload)
	}
	slices.SortFunc(all, func(v, w Workload) int {
		return cmp.Or(strings.Compare(v.Project, w.Project), strings.Compare(v.Name, w.Name))
	})
	return all
}
