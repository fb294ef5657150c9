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

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// Trace is what happened to a fleet, as a file tells it: in a simulation it happens instead of what would be drawn of the
// same causes. Its times count from the start.
type Trace struct {
	// Name is that of the file, without its folder.
	Name string
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
	cause string
	// lasts is how long; zero is drawn, where there is a length at all.
	lasts time.Duration
	line  int
}

const drawn = "*"

// The bounds of a trace.
const (
	Longest     = 3650 * 24 * time.Hour
	mostMoments = 1_000_000
)

// ParseTrace reads a trace: CSV with the header seconds,slice,cause or seconds,slice,cause,minutes. Causes are those of Causes. A slice
// is a name or * for one that is drawn, and of a stockout it is a zone or a place in it, as cloudtputest.ParsePlace reads them. Minutes is how long it lasts. The error is one line with line
// and fault.
func ParseTrace(name string, data []byte) (Trace, error) {
	t := Trace{Name: filepath.Base(name), Data: data}
	if err := t.table(bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))); err != nil {
		return Trace{}, fmt.Errorf("%s: %w", t.Name, err)
	}
	slices.SortStableFunc(t.moments, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	return t, nil
}

func (t *Trace) table(data []byte) error {
	r := csv.NewReader(bytes.NewReader(data))
	r.FieldsPerRecord, r.Comment, r.TrimLeadingSpace = -1, '#', true
	header := ""
	for {
		fields, err := r.Read()
		switch {
		case errors.Is(err, io.EOF) && header == "":
			return errors.New("it is empty, or holds only comments")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return errors.New(strings.Join(strings.Fields(err.Error()), " "))
		}
		line, _ := r.FieldPos(0)
		if header == "" {
			if header = strings.Join(fields, ","); header != "seconds,slice,cause" && header != "seconds,slice,cause,minutes" {
				return fmt.Errorf("line %d: %.60q begins no trace; that is the header seconds,slice,cause[,minutes]", line, header)
			}
			continue
		}
		if err := t.event(fields); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		t.moments[len(t.moments)-1].line = line
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
	if _, err := cloudtputest.ParsePlace(m.where); m.cause == "stockout" && err != nil {
		return err
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
		zonal := m.cause == "stockout"
		c, known := byName[m.where]
		zone, _, _ := strings.Cut(m.where, " ")
		switch {
		case m.where == drawn:
		case zonal && zone != drawn && !slices.Contains(zones, zone):
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

// traced reports whether traces tell when something happens.
func (s Draws) traced(name string) bool {
	cause := causeKey(name)
	return slices.ContainsFunc(s.Traces, func(t Trace) bool {
		return slices.ContainsFunc(t.moments, func(m moment) bool { return m.cause == cause })
	})
}
