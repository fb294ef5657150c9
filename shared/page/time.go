package page

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/saving"
	"pitstop.internal/shared/view"
)

// Time is where the time of many workloads went, as far as their incidents tell.
type Time struct {
	Frame
	// Filter asks for a workload and for days; nothing else of it counts.
	Filter Filter
	// From and To bound the account. Partly says that it begins later than was asked for: incidents that ended before are too many to read.
	From, To time.Time
	Partly   bool
	// Workloads are those that count, and Past their incidents. More says that there are others, which do not count.
	Workloads []view.Workload
	Past      map[string][]view.Past
	More      bool
	// Saves say how workloads save, the dearest first, where their crews tell enough.
	Saves []Saves
}

// Saves say how a workload saves.
type Saves struct {
	Workload string
	saving.Habit
}

const (
	// usualSpan is the time that is accounted for where nobody asks for another one.
	usualSpan = 30 * day
	// mostCounted bounds the workloads that are read, mostDrawn those that are drawn and listed, mostCurves those whose saves are shown, and
	// mostDearest the interruptions that are listed.
	mostCounted = 2000
	mostDrawn   = 20
	mostCurves  = 4
	mostDearest = 10
)

// time reads what the page says of where the time went.
func (s Site) time(r *http.Request, out *bytes.Buffer) error {
	ctx, asked := r.Context(), FilterOf(r.URL.Query())
	t := Time{
		Frame:  Frame{Title: "Where the time went", Path: "/time", At: s.Now()},
		Filter: Filter{Workload: asked.Workload, From: asked.From, Until: asked.Until}, Past: map[string][]view.Past{},
	}
	t.To = t.At
	if end := t.Filter.end(); !end.IsZero() {
		t.To = earliest(end, t.At)
	}
	t.From = cmp.Or(t.Filter.From, t.To.Add(-usualSpan))
	past, older, err := s.asked(ctx, &t.Frame, Filter{Workload: t.Filter.Workload, From: t.From}, "", mostAdded, mostAdded)
	if err != nil {
		return err
	}
	if t.Partly = older != "" && len(past) > 0; t.Partly {
		t.From = past[len(past)-1].Closed
	}
	for _, p := range past {
		t.Past[p.Workload] = append(t.Past[p.Workload], p)
	}
	policies, err := s.Policies(ctx)
	if err != nil {
		return err
	}
	if err := s.readCounted(ctx, &t); err != nil {
		return err
	}
	for _, a := range t.accounts() {
		every, atLeast := saving.Every(*a.of, saving.Unsaved(*a.of))
		if every == 0 || a.of.Training.Finished {
			continue
		}
		all, err := s.Ledger.PastOf(ctx, a.of.ID)
		if err = t.without(err); err != nil {
			return err
		}
		price := policies.For(ctx, a.of.Label).ChipHourPrice
		t.Saves = append(t.Saves, Saves{a.of.ID, saving.Of(*a.of, every, atLeast, saving.HistoryOf(*a.of, all, t.At), price)})
		if len(t.Saves) == mostCurves {
			break
		}
	}
	return WriteTime(out, t)
}

// readCounted reads the workloads that are asked for, and adds the incidents that they have themselves.
func (s Site) readCounted(ctx context.Context, t *Time) error {
	if t.Filter.Workload == "" {
		documents, next, err := s.Ledger.Worst(ctx, "", mostCounted)
		if err = t.without(err); err != nil {
			return err
		}
		t.More = next != ""
		for _, w := range documents {
			t.Workloads = append(t.Workloads, w.Shown(t.At))
		}
	} else {
		ids, err := s.named(ctx, t.Filter.Workload)
		if err != nil {
			return err
		}
		for _, id := range ids {
			switch w, _, err := s.Ledger.Workload(ctx, id); {
			case err == nil:
				t.Workloads = append(t.Workloads, w.Shown(t.At))
			case !errors.Is(err, ledger.ErrNotFound):
				return err
			}
		}
	}
	for _, w := range t.Workloads {
		t.Past[w.ID] = w.Pasts(t.Past[w.ID])
	}
	return nil
}

// account is where the time of one workload went.
type account struct {
	of       *view.Workload
	from, to time.Time
	stops    []stop
	// still are the times of its stops, and again that of steps that were done again.
	still        []Stretch
	stood, again time.Duration
}

// stop is a time in which a workload stood still. Its incident has no ID where none tells of it.
type stop struct {
	view.Past
	Stretch
	again time.Duration
	by    map[string]time.Duration
}

func (s stop) lost() time.Duration { return s.To.Sub(s.From) + s.again }

func (a account) whole() time.Duration { return a.to.Sub(a.from) }

func (a account) lost() time.Duration { return a.stood + a.again }

// The parts of a stop that no phase of its incident has.
const (
	afterwards = "left to a person"
	untold     = "not told"
	unseen     = "no incident"
)

// otherStages say what these parts are.
var otherStages = [][2]string{
	{afterwards, "after the end of an incident that was left to a person"},
	{untold, "an incident whose story is too long to be stored whole"},
	{unseen, "a slice was not usable, or a crew had given up, and no incident told of it"},
}

// accounts are those of the workloads that were known in the time, the dearest first.
func (t Time) accounts() (all []account) {
	for i := range t.Workloads {
		w := &t.Workloads[i]
		end, _ := endOf(*w, t.To)
		a := account{of: w, from: latest(t.From, w.Seen), to: earliest(end, t.To)}
		if !a.to.After(a.from) {
			continue
		}
		a.count(t.Past[w.ID])
		all = append(all, a)
	}
	slices.SortStableFunc(all, func(a, b account) int { return cmp.Or(cmp.Compare(b.lost(), a.lost()), cmp.Compare(a.of.ID, b.of.ID)) })
	return all
}

// count adds up when it stood still: each moment once.
func (a *account) count(past []view.Past) {
	past = slices.DeleteFunc(slices.Clone(past), func(p view.Past) bool { return p.Down.IsZero() })
	slices.SortFunc(past, func(p, q view.Past) int { return cmp.Or(p.Down.Compare(q.Down), p.Opened.Compare(q.Opened)) })
	at := a.from
	add := func(p view.Past, from, to time.Time) *stop {
		s := stop{Past: p, Stretch: Stretch{latest(from, at), earliest(to, a.to)}}
		if !s.To.After(s.From) {
			return nil
		}
		at = s.To
		a.stops, a.still, a.stood = append(a.stops, s), append(a.still, s.Stretch), a.stood+s.To.Sub(s.From)
		return &a.stops[len(a.stops)-1]
	}
	for _, p := range past {
		if s := add(p, p.Down, p.Back()); s != nil {
			s.by = partsOf(p, s.To.Sub(s.From))
		}
	}
	if since := stillSince(*a.of); !since.IsZero() {
		if s := add(view.Past{Workload: a.of.ID, Cause: unseen}, since, a.to); s != nil {
			s.by = map[string]time.Duration{unseen: s.To.Sub(s.From)}
		}
	}
	next, left := a.to, time.Duration(0)
	for i := range slices.Backward(a.stops) { // what was lost is done again after its stop, while nothing else is
		s := &a.stops[i]
		left += next.Sub(s.To)
		s.again = min(time.Duration(s.Cost.AgainSeconds*float64(time.Second)), left)
		next, left, a.again = s.From, left-s.again, a.again+s.again
	}
}

// partsOf divides a stop among the phases in which its incident stood still. Of one that lies in the account only in part, each phase counts in part.
func partsOf(p view.Past, kept time.Duration) map[string]time.Duration {
	by, left, last := map[string]time.Duration{}, kept, untold
	take := func(name string, d time.Duration) {
		if d > 0 {
			last = name
			d = min(left, time.Duration(float64(d)*kept.Seconds()/p.Cost.Away().Seconds()))
			by[name], left = d, left-d
		}
	}
	for _, st := range stages {
		take(string(st.Phase), time.Duration(p.Still[st.Phase]*float64(time.Second)))
	}
	if !p.Closed.IsZero() {
		take(afterwards, p.Back().Sub(latest(p.Closed, p.Down)))
	}
	if left > time.Second {
		last = untold
	}
	by[last] += left // less than a second is left by rounding
	return by
}

// Account is the sum of the accounts of all workloads: what was taken from the whole, one part after the other, and what is left.
type Account struct {
	Whole, Left time.Duration
	Taken       []Taken
}

// Taken is a part of an account: a stage of the way back while the training stood still, or what was done again.
type Taken struct {
	Name, What    string
	Interruptions int
	Time          time.Duration
}

// Account adds the accounts up.
func (t Time) Account() Account { return sumOf(t.accounts()) }

func sumOf(all []account) (sum Account) {
	by, in := map[string]time.Duration{}, map[string]int{}
	again, stops := time.Duration(0), 0
	for _, a := range all {
		sum.Whole += a.whole()
		again += a.again
		for _, s := range a.stops {
			for name, d := range s.by {
				by[name] += d
				in[name]++
			}
			if s.again > 0 {
				stops++
			}
		}
	}
	sum.Left = sum.Whole
	take := func(name, what string, times int, d time.Duration) {
		if d > 0 {
			sum.Taken, sum.Left = append(sum.Taken, Taken{name, what, times, d}), sum.Left-d
		}
	}
	for _, st := range stages {
		take(string(st.Phase), st.What, in[string(st.Phase)], by[string(st.Phase)])
	}
	for _, o := range otherStages {
		take(o[0], o[1], in[o[0]], by[o[0]])
	}
	take("done again", "steps that were lost, and had to be done once more", stops, again)
	return sum
}

// shownTime is what the template reads.
type shownTime struct {
	Time
	Count, Losses    string
	Cascade          *Cascade
	Sum              [][]string
	Strips           *Strips
	Rows             []timeRow
	Dearest          []dearRow
	OfRows, OfCurves string
	Curves           []shownCurve
}

type timeRow struct {
	Name, Link, Known, Stood, Again, Trained string
	Stops                                    int
}

type dearRow struct {
	ID, Link, Workload, When, Cause, Where, Away, Again string
}

type shownCurve struct {
	*Curve
	Workload, Text, Do string
	Rows               [][]string
}

// minute is how the bounds of an account are written.
const minute = "2006-01-02 15:04"

// WriteTime writes the page of where the time went.
func WriteTime(out io.Writer, t Time) error {
	all := t.accounts()
	sum := sumOf(all)
	s := shownTime{Time: t, Count: count(len(all), "workload"), Losses: "/losses?" + Filter{Workload: t.Filter.Workload, From: t.From.UTC(), Until: t.Filter.Until}.Query().Encode()}
	if t.More {
		s.Count = "the worst " + s.Count + " (others are left out)"
	}
	s.Count += ", " + t.From.UTC().Format(minute) + " to " + t.To.UTC().Format(minute) + " UTC"
	share := func(d time.Duration) string { return oneDecimal(100*d.Seconds()/max(1, sum.Whole.Seconds())) + " %" }
	says := func(d time.Duration) string { return share(d) + ", " + events.Span(d) }
	s.Cascade = &Cascade{Name: "cascade", Title: "From all time down to training", Whole: "all time", Left: Step{"training, as far as told", says(sum.Left), sum.Left.Seconds()}}
	row := func(name, what, times string, d time.Duration) {
		s.Sum = append(s.Sum, []string{name, what, times, events.Span(d), share(d)})
	}
	row("all time", "since each workload was first seen, until it was finished or left to its owner", "", sum.Whole)
	for _, k := range sum.Taken {
		s.Cascade.Taken = append(s.Cascade.Taken, Step{k.Name, says(k.Time), k.Time.Seconds()})
		row(k.Name, k.What, strconv.Itoa(k.Interruptions), k.Time)
	}
	row("training", "as far as incidents tell", "", sum.Left)
	marks := s.addDearest(all)
	s.Strips = &Strips{Name: "strips", Title: "When each workload stood still", From: t.To, To: t.To}
	for _, a := range all[:min(len(all), mostDrawn)] {
		s.Strips.From = earliest(s.Strips.From, a.from)
		s.Strips.Lanes = append(s.Strips.Lanes, Strip{Name: a.of.Name, Since: a.from, Still: a.still, Marks: marks[a.of.ID]})
		s.Rows = append(s.Rows, timeRow{
			a.of.ID, "/incidents?" + url.Values{"workload": {a.of.ID}}.Encode(), events.Span(a.whole()), events.Span(a.stood), events.Span(a.again),
			oneDecimal(100*(a.whole()-a.lost()).Seconds()/a.whole().Seconds()) + " %", len(a.stops),
		})
	}
	if more := len(all) - len(s.Rows); more > 0 {
		s.OfRows = fmt.Sprintf("The %d that lost most. %s more lost less: they are not drawn, and count above.", len(s.Rows), events.Number(int64(more)))
	}
	for i, h := range t.Saves {
		s.Curves = append(s.Curves, h.curve("curve"+strconv.Itoa(i)))
	}
	if len(s.Curves) == mostCurves {
		s.OfCurves = fmt.Sprintf("The %d that lost most of those whose crews tell enough.", mostCurves)
	}
	return render(out, "time", s)
}

// addDearest lists the dearest interruptions, and returns their marks by workload.
func (s *shownTime) addDearest(all []account) map[string][]Mark {
	var stops []stop
	for _, a := range all {
		stops = append(stops, a.stops...)
	}
	slices.SortStableFunc(stops, func(a, b stop) int { return cmp.Compare(b.lost(), a.lost()) })
	marks := map[string][]Mark{}
	for _, p := range stops[:min(len(stops), mostDearest)] {
		away, again := events.Span(p.To.Sub(p.From)), "-"
		if p.Cost.AtLeast {
			away = ">= " + away
		}
		if p.again > 0 {
			again = events.Span(p.again)
		}
		r := dearRow{p.ID, "", p.Workload, stamp(p.From), causeText(p.Cause), strings.Join(p.Zones, ", "), away, again}
		if p.ID != "" {
			r.Link = incidentLink(p.Workload, p.ID)
		}
		s.Dearest = append(s.Dearest, r)
		marks[p.Workload] = append(marks[p.Workload], Mark{p.From, Trouble, causeText(p.Cause) + ", " + away + " away"})
	}
	return marks
}

// curve draws how a workload saves, with the words that check has for it.
func (h Saves) curve(name string) shownCurve {
	c := NewCurve(name, "Goodput of "+h.Workload+" by the time between two saves", h.Record, time.Duration(h.BestSeconds)*time.Second)
	s := shownCurve{Curve: &c, Workload: h.Workload, Text: h.State(), Rows: c.Rows()}
	if h.Seldom() || h.Advises() {
		do, because := h.Advice()
		s.Do = do
		if because != "" {
			s.Text += "; " + because
		}
	}
	return s
}
