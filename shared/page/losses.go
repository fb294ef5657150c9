package page

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/view"
)

// Losses are what many incidents add up to: where training stood still and when, and how long each stage of the way back took.
type Losses struct {
	Frame
	Filter Filter
	// All are the closed incidents that are asked for. Partly says that there are older ones, which were not read.
	All    []view.Past
	Partly bool
}

// mostAdded bounds the incidents that are read for sums.
const mostAdded = 5000

// losses reads what the page of losses adds up.
func (s Site) losses(r *http.Request, out *bytes.Buffer) error {
	l := Losses{Frame: Frame{Title: "Losses", Path: "/losses", At: s.Now()}, Filter: FilterOf(r.URL.Query())}
	all, before, err := s.asked(r.Context(), &l.Frame, l.Filter, "", mostAdded, mostAdded)
	if err != nil {
		return err
	}
	l.All, l.Partly = all, before != ""
	return WriteLosses(out, l)
}

// lossRow is what was lost in a zone in a month.
type lossRow struct {
	Month, Zone string
	Losses      int
	Away, Chips string
	away        time.Duration
	chipHours   float64
}

type shownLosses struct {
	Losses
	Rows      []lossRow
	Months    Columns
	Stages    []stageRow
	Reactions Spreads
	Count     string
}

// WriteLosses writes the page of losses.
func WriteLosses(out io.Writer, l Losses) error {
	s := shownLosses{Losses: l}
	s.Rows, s.Months = byZoneAndMonth(l.All)
	s.Stages, s.Reactions = byStage(l.All)
	s.Count = count(len(l.All), "closed incident")
	if l.Partly {
		s.Count = "the newest " + s.Count + "; older ones are left out"
	}
	return render(out, "losses", s)
}

// unknown is the zone of what no zone is known of.
const unknown = "unknown"

// byZoneAndMonth adds up the incidents in which the training stood still, the newest month first. One that struck several zones counts in each.
func byZoneAndMonth(all []view.Past) (rows []lossRow, c Columns) {
	type key struct{ month, zone string }
	at := map[key]*lossRow{}
	c = Columns{Name: "months", Title: "Losses by month and zone", Unit: "losses"}
	for _, p := range all {
		if p.Down.IsZero() {
			continue
		}
		zones := p.Zones
		if len(zones) == 0 {
			zones = []string{unknown}
		}
		for _, z := range zones {
			k := key{p.Closed.UTC().Format(Month), z}
			if at[k] == nil {
				at[k] = &lossRow{Month: k.month, Zone: z}
			}
			at[k].Losses++
			at[k].away += p.Cost.Away()
			at[k].chipHours += p.Cost.ChipHours / float64(len(zones))
			c.Add(k.month, z, 1)
		}
	}
	for _, r := range at {
		r.Away, r.Chips = events.Span(r.away), oneDecimal(r.chipHours)
		rows = append(rows, *r)
	}
	slices.SortFunc(rows, func(a, b lossRow) int { return cmp.Or(cmp.Compare(b.Month, a.Month), cmp.Compare(a.Zone, b.Zone)) })
	return rows, c
}

// stageRow is how long one stage took in the incidents that had it.
type stageRow struct {
	Stage, What             string
	Incidents               int
	Median, Most90, Longest string
}

// stages are those of the way back in their usual order, and what each of them is.
var stages = []struct {
	Phase view.Phase
	What  string
}{
	{view.Noticing, "the training stood still, and Pitstop did not know it yet"},
	{view.Saving, "from the request to save to the verified checkpoint"},
	{view.Maintaining, "until the announced maintenance was started"},
	{view.Window, "until the maintenance was over"},
	{view.Looking, "until a reading of the API explained the evidence"},
	{view.PhaseGrace, "for word of who deleted a slice"},
	{view.Healing, "for the provider's own recovery"},
	{view.Approving, "for a person's approval"},
	{view.PhaseDeleting, "until the lost slice was gone"},
	{view.PhaseCreating, "until a new slice was usable"},
	{view.Starting, "until a stopped slice was usable"},
	{view.Admitting, "until the lease named the new slice"},
	{view.Restarting, "until the lease named a new attempt"},
	{view.Resuming, "until a step was past the saved one"},
	{view.Clearing, "until what Pitstop had created was gone"},
	{view.Watching, "Pitstop might only watch"},
}

// byStage says of each stage how long it took: half of the incidents, and nine of ten.
func byStage(all []view.Past) (rows []stageRow, p Spreads) {
	took := map[view.Phase][]time.Duration{}
	for _, in := range all {
		for phase, s := range in.Took {
			took[phase] = append(took[phase], time.Duration(s*float64(time.Second)))
		}
	}
	p = Spreads{Name: "stages", Title: "How long each stage took"}
	for _, st := range stages {
		d := took[st.Phase]
		if len(d) == 0 {
			continue
		}
		slices.Sort(d)
		median, most, longest := part(d, 50), part(d, 90), d[len(d)-1]
		rows = append(rows, stageRow{string(st.Phase), st.What, len(d), events.Span(median), events.Span(most), events.Span(longest)})
		p.Rows = append(p.Rows, Spread{string(st.Phase), median, most, longest})
	}
	return rows, p
}

// part is the smallest of some durations, in their order, that so many of a hundred do not exceed.
func part(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)*percent+99)/100-1]
}
