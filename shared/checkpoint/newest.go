package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// maxLooked bounds how many steps, and how many other directories, Newest looks at.
const maxLooked = 64

// Newest finds the complete checkpoint in dir that was completed last, if that was after since. It goes by time alone: somebody may have
// gone back to an earlier step, and saves lower steps beside the higher ones. If there is none the error is *Missing; every other error
// says that it could not look.
//
// Missing.Stale says that nothing at all was written there since then, besides Pitstop's own objects, and that a complete checkpoint is
// older. Then Missing.Saves are the times of all complete ones, and Missing.Last is the newest. What Newest cannot look at in whole may be newer, so it is not stale.
func Newest(ctx context.Context, s Store, dir string, since time.Time) (Found, error) {
	top, err := s.List(ctx, dir, ListOptions{})
	if errors.Is(err, ErrNotExist) {
		return Found{}, &Missing{Dir: dir, Text: "the directory does not exist", None: true}
	}
	if err != nil {
		return Found{}, err
	}
	c := candidatesOf(top.Entries)
	var newest Found
	var saves []time.Time
	var unfinished []string
	for i, step := range c.steps[:min(len(c.steps), maxLooked)] {
		f, why, err := inspect(ctx, s, dir, step, c.beside(dir, i))
		switch {
		case err != nil:
			return Found{}, err
		case why != "":
			unfinished = append(unfinished, step.name)
			continue
		}
		if saves = append(saves, f.At); newest.At.Before(f.At) {
			newest = f
		}
	}
	if newest.At.After(since) {
		return newest, nil
	}
	doubt, err := written(ctx, s, dir, top, unfinished, since)
	if err != nil {
		return Found{}, err
	}
	if len(c.steps) > maxLooked {
		doubt = fmt.Sprintf("only %d of its %d steps were looked at", maxLooked, len(c.steps))
	}
	m := &Missing{Dir: dir, Text: doubt, None: doubt == "" && len(c.steps) == 0 && c.others == 0 && c.writing == "", Stale: doubt == "" && len(saves) > 0}
	switch {
	case m.Stale:
		slices.SortFunc(saves, time.Time.Compare)
		m.Saves, m.Last, m.Text = saves, newest, fmt.Sprintf("the newest complete checkpoint is step %d of %s, and nothing was written since %s", newest.Step, clock(newest.At), clock(since))
	case doubt == "" && len(c.steps) > 0:
		m.Text = "no step is complete"
	case doubt == "":
		m.Text = c.instead()
	}
	return Found{}, m
}

// written says what in a directory may have been written since a time, or cannot be looked at in whole; empty where nothing may. Of the
// step directories it looks into the unfinished ones alone.
func written(ctx context.Context, s Store, dir string, top Listing, unfinished []string, since time.Time) (string, error) {
	if top.Truncated {
		return fmt.Sprintf("only the first %d names were read", len(top.Entries)), nil
	}
	looked := 0
	for _, e := range top.Entries {
		if !e.Dir {
			own := e.Name == LeaseName || e.Name == RequestName || e.Name == CrewName
			if !own && e.Updated.After(since) {
				return oneLine(e.Name) + " was written at " + clock(e.Updated), nil
			}
			continue
		}
		if _, step := Step(e.Name); step && !slices.Contains(unfinished, e.Name) {
			continue // it is complete
		}
		if looked++; looked > maxLooked {
			return fmt.Sprintf("it holds more than %d directories that are no complete step", maxLooked), nil
		}
		in, err := s.List(ctx, Join(dir, e.Name), ListOptions{Recursive: true, Limit: maxNames})
		if err != nil && !errors.Is(err, ErrNotExist) {
			return "", err
		}
		if i := slices.IndexFunc(in.Entries, func(e Entry) bool { return e.Updated.After(since) }); i >= 0 {
			return oneLine(e.Name+"/"+in.Entries[i].Name) + " was written at " + clock(in.Entries[i].Updated), nil
		}
		if in.Truncated {
			return fmt.Sprintf("only the first %d objects of %s were looked at", maxNames, oneLine(e.Name)), nil
		}
	}
	return "", nil
}
