package faults

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/policy"
)

// Trace is what happened to a fleet, as a file tells it: in a simulation it happens instead of what would be drawn of the
// same causes. Its times count from the start.
type Trace struct {
	// Name is that of the file, without its folder.
	Name string
	// Zone is where an availability series takes place.
	Zone string
	// Lasts is how long it is.
	Lasts time.Duration

	moments []moment
	Data    []byte
}

// moment is one thing that a trace tells.
type moment struct {
	at time.Duration
	// where is a slice, a zone, or drawn for one that is drawn.
	where string
	// node, from 1, is which Spot slice of the fleet is meant, counted round and round: a list of nodes knows no slices.
	node  int
	cause string
	// lasts is how long; zero is drawn, where there is a length at all.
	lasts time.Duration
	line  int
}

const (
	drawn = "*"
	// noCapacity is what an availability series tells: a zone takes all Spot slices back and gives none for a while.
	noCapacity = "no_capacity"
)

// The bounds of a trace.
const (
	Longest     = 3650 * 24 * time.Hour
	mostMoments = 1_000_000
)

// ParseTrace reads a trace in one of three forms, told apart by how it begins:
//
//   - events, CSV with the header seconds,slice,cause or seconds,slice,cause,minutes: causes are those of Causes, a slice is
//     a name or * for one that is drawn, and of a stockout it is a zone; minutes is how long it lasts;
//   - availability, JSON {"metadata": {"gap_seconds": 300}, "data": [1, 1, 0, ...]}: 0 takes all Spot slices of the zone
//     back and gives none until there is another number; the zone is what the name of the file has before its first _;
//   - nodes, CSV milliseconds,add|remove,node without a header: with each removed node one Spot slice is preempted.
//
// Zone is the zone of an availability series; empty takes it from the name. The error is one line with line and fault.
func ParseTrace(name, zone string, data []byte) (Trace, error) {
	t := Trace{Name: filepath.Base(name), Zone: zone, Data: data}
	text := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF")), " \t\r\n")
	var err error
	switch {
	case len(text) == 0:
		err = errors.New("it is empty")
	case text[0] == '{':
		err = t.availability(text)
	case zone != "":
		err = fmt.Errorf("the zone %s is for an availability series, and this is none", zone)
	default:
		err = t.table(bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF")))
	}
	if err != nil {
		return Trace{}, fmt.Errorf("%s: %w", t.Name, err)
	}
	slices.SortStableFunc(t.moments, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	return t, nil
}

// availability reads a series of how many instances there were.
func (t *Trace) availability(data []byte) error {
	var series struct {
		Metadata struct {
			Gap float64 `json:"gap_seconds"`
		} `json:"metadata"`
		Data []float64 `json:"data"`
	}
	if err := json.Unmarshal(data, &series); err != nil {
		return fmt.Errorf("it is no availability series: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	switch gap := series.Metadata.Gap; {
	case !(gap > 0):
		return fmt.Errorf("metadata.gap_seconds is %v; it has to be more than 0", gap)
	case len(series.Data) == 0:
		return errors.New("data is empty")
	case gap*float64(len(series.Data)) > Longest.Seconds():
		return fmt.Errorf("it is longer than the %d days that are simulated at most", Longest/(24*time.Hour))
	}
	gap := time.Duration(series.Metadata.Gap * float64(time.Second))
	t.Lasts = gap * time.Duration(len(series.Data))
	t.Zone = cmp.Or(t.Zone, zoneOf(t.Name))
	var gone *moment
	for i, n := range series.Data {
		at := gap * time.Duration(i)
		switch {
		case n < 0:
			return fmt.Errorf("data[%d] is %v: there are never fewer than none", i, n)
		case n > 0 && gone != nil:
			gone.lasts = at - gone.at
			t.moments, gone = append(t.moments, *gone), nil
		case n == 0 && gone == nil:
			gone = &moment{at: at, where: t.Zone, cause: noCapacity}
		}
	}
	if gone != nil { // the time after the end is unknown
		gone.lasts = t.Lasts - gone.at
		t.moments = append(t.moments, *gone)
	}
	return nil
}

// zoneOf is the zone that the name of a file begins with: us-west4-a_v5e.json.
func zoneOf(name string) string {
	name, _, _ = strings.Cut(name, "_")
	return strings.TrimSuffix(name, ".json")
}

// table reads the two forms that are CSV.
func (t *Trace) table(data []byte) error {
	r := csv.NewReader(bytes.NewReader(data))
	r.FieldsPerRecord, r.Comment, r.TrimLeadingSpace = -1, '#', true
	var read func(fields []string) error
	for {
		fields, err := r.Read()
		switch {
		case errors.Is(err, io.EOF) && read == nil:
			return errors.New("it holds only comments")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return errors.New(strings.Join(strings.Fields(err.Error()), " "))
		}
		line, _ := r.FieldPos(0)
		if read == nil {
			switch header := strings.Join(fields, ","); {
			case header == "seconds,slice,cause" || header == "seconds,slice,cause,minutes":
				read = t.event
				continue
			case len(fields) == 3 && (fields[1] == "add" || fields[1] == "remove"):
				read = t.nodes()
			default:
				return fmt.Errorf("line %d: %.60q begins no trace; that is the header seconds,slice,cause[,minutes], or milliseconds,add|remove,node, or {", line, header)
			}
		}
		before := len(t.moments)
		if err := read(fields); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		if len(t.moments) > before {
			t.moments[before].line = line
		}
		if len(t.moments) > mostMoments {
			return fmt.Errorf("line %d: more than %s events", line, events.Number(mostMoments))
		}
	}
}

// event reads one line of an event list.
func (t *Trace) event(fields []string) error {
	if len(fields) < 3 || len(fields) > 4 {
		return fmt.Errorf("%d fields; there have to be seconds, slice, cause and perhaps minutes", len(fields))
	}
	at, err := amount(fields[0], "seconds", time.Second)
	if err != nil {
		return err
	}
	m := moment{at: at, where: fields[1], cause: fields[2]}
	slice, all := Causes()
	switch known := slices.Concat(slice, all); {
	case !slices.Contains(known, m.cause):
		return fmt.Errorf("%.40q is no cause; %s", m.cause, policy.Nearest(m.cause, known))
	case m.where == "":
		return errors.New("the slice is missing; * is one that is drawn")
	case m.cause != "stockout" && slices.Contains(all, m.cause) && m.where != drawn:
		return fmt.Errorf("%s concerns everything; its slice has to be *", m.cause)
	}
	if len(fields) == 4 && fields[3] != "" {
		if m.lasts, err = amount(fields[3], "minutes", time.Minute); err != nil {
			return err
		}
		if _, ok := lengths[m.cause]; !ok || m.lasts == 0 {
			return fmt.Errorf("%s has no length of %.20s minutes; leave it empty", m.cause, fields[3])
		}
	}
	t.moments = append(t.moments, m)
	t.Lasts = max(t.Lasts, at)
	return nil
}

// nodes reads lines of a list of nodes.
func (t *Trace) nodes() func(fields []string) error {
	seen := map[string]int{}
	return func(fields []string) error {
		if len(fields) != 3 || fields[1] != "add" && fields[1] != "remove" || fields[2] == "" {
			return errors.New("it has to be milliseconds, add or remove, and a node")
		}
		at, err := amount(fields[0], "milliseconds", time.Millisecond)
		if err != nil {
			return err
		}
		if seen[fields[2]] == 0 {
			seen[fields[2]] = len(seen) + 1
		}
		if fields[1] == "remove" {
			t.moments = append(t.moments, moment{at: at, node: seen[fields[2]], cause: "preempted"})
		}
		t.Lasts = max(t.Lasts, at)
		return nil
	}
}

func amount(s, unit string, one time.Duration) (time.Duration, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v <= Longest.Seconds()/one.Seconds()) {
		return 0, fmt.Errorf("%.40q is no number of %s from 0 to that of %d days", s, unit, Longest/(24*time.Hour))
	}
	return time.Duration(v * float64(one)), nil
}

// Fits reports what of a trace cannot happen to a fleet: a zone or a slice that it does not have.
func (t Trace) Fits(s world.Scenario) error {
	zones := s.Zones()
	byName := map[string]world.SliceConfig{}
	for _, c := range s.Fleet {
		byName[c.Name] = c
	}
	for _, m := range t.moments {
		zonal := m.cause == noCapacity || m.cause == "stockout"
		c, known := byName[m.where]
		switch {
		case m.where == drawn || m.node > 0:
		case zonal && !slices.Contains(zones, m.where) && m.cause == noCapacity:
			return fmt.Errorf("%s: %q is no zone of the fleet (%s); name one with FILE=ZONE", t.Name, m.where, strings.Join(zones, ", "))
		case zonal && !slices.Contains(zones, m.where):
			return fmt.Errorf("%s: line %d: %.40q is no zone of the fleet (%s)", t.Name, m.line, m.where, strings.Join(zones, ", "))
		case zonal:
		case !known:
			return fmt.Errorf("%s: line %d: %.40q is no slice of the fleet; %s", t.Name, m.line, m.where, policy.Nearest(m.where, slices.Sorted(maps.Keys(byName))))
		case !happeningOf(m.cause).befalls(c.Spot):
			return fmt.Errorf("%s: line %d: %s does not happen to %s, which is %s", t.Name, m.line, m.cause, m.where, kindOf(c))
		}
	}
	return nil
}

func kindOf(c world.SliceConfig) string {
	if c.Spot {
		return "Spot"
	}
	return "not Spot"
}

// traced reports whether traces tell when something happens. What takes Spot slices back tells of those that no log tells of
// too, and of a zone without capacity.
func (s Draws) traced(name string) bool {
	cause := causeKey(name)
	return slices.ContainsFunc(s.Traces, func(t Trace) bool {
		return slices.ContainsFunc(t.moments, func(m moment) bool {
			taken := strings.HasPrefix(cause, "preempted") || cause == "vanished"
			switch {
			case m.cause == noCapacity:
				return taken || cause == "stockout"
			case m.node > 0:
				return taken
			}
			return cause == m.cause
		})
	})
}
