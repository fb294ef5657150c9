package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/ledger/ledgertest"
)

// The files of a folder that keeps a demo.
const (
	ledgerName = "ledger.jsonl"
	fleetName  = "fleet.json"
)

// left is how a demo ended.
type left struct {
	// Ended is its time then. The clock of the next one does not go back.
	Ended  time.Time   `json:"ended"`
	Slices []leftSlice `json:"slices"`
}

// leftSlice is a slice that trained when the demo ended, or that its owner had deleted by then.
type leftSlice struct {
	Name    string    `json:"name"`
	Zone    string    `json:"zone"`
	ID      int64     `json:"id"`
	Created time.Time `json:"created"`
	Workers string    `json:"workers"`
	Step    int64     `json:"step"`
	Attempt int       `json:"attempt"`
	Gone    bool      `json:"gone,omitempty"`
}

// keep writes the ledger and the fleet into the folder. Calls that are under way are forgotten, as are messages: patrol looks for itself.
func (d *Demo) keep() error {
	l := left{Ended: d.Now()}
	for _, c := range d.Fleet {
		zone := d.zoneOf(c.Name)
		t := d.Trainings[c.Name]
		s, _ := t.State()
		w, _, err := d.Ledger.Workload(context.Background(), d.Project+"/"+c.WorkloadName())
		if zone == "" && d.queuedZone(c) == "" && err == nil && w.Shown(d.Now()).Incident == nil {
			l.Slices = append(l.Slices, leftSlice{
				Name: c.Name, Zone: c.Zone, ID: c.ID, Workers: t.Group(), Step: t.LastStep(), Attempt: s.Attempt, Gone: true,
			})
			continue
		}
		state, life := d.API.State(zone, c.Name)
		id, err := strconv.ParseInt(life.ID, 10, 64)
		if state != ready || err != nil && !c.Legacy {
			continue // the next demo has a new one
		}
		l.Slices = append(l.Slices, leftSlice{c.Name, zone, id, life.Created, t.Group(), t.LastStep(), s.Attempt, false})
	}
	raw, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	var documents bytes.Buffer
	if err := d.Opts.Store.Save(&documents); err != nil {
		return err
	}
	return write(d.dir, []draft{{ledgerName, documents.Bytes()}, {fleetName, append(raw, '\n')}})
}

// draft is a file before it has its name.
type draft struct {
	name string
	text []byte
}

// write writes all files, and then gives each its name. If a file cannot be written, those of before stay.
func write(dir string, files []draft) error {
	var written []*os.File
	defer func() {
		for _, f := range written {
			_ = os.Remove(f.Name()) //nolint:errcheck // it has its name by now
		}
	}()
	for _, d := range files {
		f, err := os.CreateTemp(dir, "."+d.name+"-*") // which nobody else may read
		if err != nil {
			return err
		}
		written = append(written, f)
		_, err = f.Write(d.text)
		if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	for i, f := range written {
		if err := os.Rename(f.Name(), filepath.Join(dir, files[i].name)); err != nil {
			return err
		}
	}
	return nil
}

// restore reads what a demo has left in a folder into the store and into the fleet, and reports whether there was something.
func restore(dir string, store *ledgertest.Store, fleet *world.Scenario) (found bool, err error) {
	if dir == "" {
		return false, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil { // better now than at the end
		return false, err
	}
	raw, err := os.ReadFile(filepath.Join(dir, fleetName))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var l left
	if err := json.Unmarshal(raw, &l); err != nil {
		return false, unreadable(dir, fleetName, err)
	}
	documents, err := os.Open(filepath.Join(dir, ledgerName))
	if err != nil {
		return false, unreadable(dir, ledgerName, err)
	}
	defer documents.Close() //nolint:errcheck // it was read
	if err := store.Restore(documents); err != nil {
		return false, unreadable(dir, ledgerName, err)
	}
	if l.Ended.After(fleet.Start) {
		fleet.Start = l.Ended
	}
	for _, s := range l.Slices {
		i := slices.IndexFunc(fleet.Fleet, func(c world.SliceConfig) bool { return c.Name == s.Name })
		if i < 0 {
			continue // an earlier release had another fleet
		}
		c := &fleet.Fleet[i]
		c.Zone, c.ID, c.Created, c.Workers = s.Zone, s.ID, s.Created, s.Workers
		c.Trainer.Step, c.Trainer.Attempt, c.Gone = s.Step, s.Attempt, s.Gone
	}
	return true, nil
}

// unreadable is the error about a file that no demo can go on with.
func unreadable(dir, name string, err error) error {
	if path := (*os.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s: %w; remove the folder %s to begin anew", filepath.Join(dir, name), err, dir)
}
