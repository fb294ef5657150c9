package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/topology"
)

// Folder is where crews leave word for each other, beside the checkpoints.
const Folder = checkpoint.CrewName

// Board is what the crews of a Multislice write on and read from: objects that are created once. It also holds the sign
// of life of a crew that wrote its own lease.
type Board struct {
	Store checkpoint.Store
	// Directory is the checkpoint directory.
	Directory string
}

func (b Board) attempt(n int) string {
	return checkpoint.Join(b.Directory, fmt.Sprintf("%s/attempt-%06d", Folder, n))
}

// create writes an object unless there is one; whose it is does not matter.
func (b Board) create(ctx context.Context, uri string, v any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = b.Store.Put(ctx, uri, content, 0)
	if errors.Is(err, checkpoint.ErrConflict) {
		return nil
	}
	return err
}

// readiness is what a slice says before an attempt. Server is where its hosts may meet; slice 0 says it.
type readiness struct {
	events.Admission
	Server string `json:"server,omitzero"`
	// Claims says that it claims its place in the attempt, and is not ready yet.
	Claims bool `json:"claims,omitzero"`
}

// Ready says that a slice is ready for an attempt, in this life. What an earlier life said is replaced. What this life has said
// stays, even with another server: another slice may have read it.
func (b Board) Ready(ctx context.Context, attempt, slice int, a events.Admission, server string) error {
	return b.say(ctx, attempt, slice, readiness{Admission: a, Server: server})
}

// Claim says that a life of a slice claims its place in an attempt, where it has not said yet that it is ready.
func (b Board) Claim(ctx context.Context, attempt, slice int, a events.Admission) error {
	return b.say(ctx, attempt, slice, readiness{Admission: a, Claims: true})
}

func (b Board) say(ctx context.Context, attempt, slice int, r readiness) error {
	uri := checkpoint.Join(b.attempt(attempt), "ready-"+strconv.Itoa(slice)+".json")
	content, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = b.Store.Put(ctx, uri, content, 0)
	if !errors.Is(err, checkpoint.ErrConflict) {
		return err
	}
	o, err := b.Store.Get(ctx, uri)
	if err != nil {
		return err
	}
	var said readiness
	if json.Unmarshal(o.Content, &said) == nil && said.Admission == r.Admission && (!said.Claims || r.Claims) && (said.Server != "" || r.Server == "") {
		return nil
	}
	_, err = b.Store.Put(ctx, uri, content, o.Generation)
	return err
}

// End says how an attempt ended; the first one to say it is believed.
func (b Board) End(ctx context.Context, c agree.Cause) error {
	return b.create(ctx, checkpoint.Join(b.attempt(c.Attempt), "ended.json"), c)
}

// Judge says what follows.
func (b Board) Judge(ctx context.Context, v agree.Verdict) error {
	return b.create(ctx, checkpoint.Join(b.Directory, events.VerdictObject(v.Attempt)), v)
}

// Look reads what all slices say about an attempt, and in which lives they are ready.
func (b Board) Look(ctx context.Context, attempt int) (agree.Outside, map[int]events.Admission, error) {
	o := agree.Outside{Attempt: attempt}
	names, err := b.Store.List(ctx, b.attempt(attempt), checkpoint.ListOptions{})
	if errors.Is(err, checkpoint.ErrNotExist) {
		return o, nil, nil
	}
	if err != nil {
		return o, nil, err
	}
	ready := map[int]events.Admission{}
	for _, e := range names.Entries {
		uri := checkpoint.Join(b.attempt(attempt), e.Name)
		var slice int
		switch _, err := fmt.Sscanf(e.Name, "ready-%d.json", &slice); {
		case err == nil:
			var said readiness
			if err := b.read(ctx, uri, &said); err != nil {
				return o, nil, err
			}
			o.Ready++
			ready[slice] = said.Admission
			if slice == 0 {
				o.Server, o.Claimed = said.Server, said.Claims
			}
		case e.Name == "ended.json":
			o.Ended = &agree.Cause{}
			if err := b.read(ctx, uri, o.Ended); err != nil {
				return o, nil, err
			}
		case e.Name == "verdict.json":
			o.Verdict = &agree.Verdict{}
			if err := b.read(ctx, uri, o.Verdict); err != nil {
				return o, nil, err
			}
		}
	}
	return o, ready, nil
}

func (b Board) read(ctx context.Context, uri string, into any) error {
	o, err := b.Store.Get(ctx, uri)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(o.Content, into); err != nil {
		return fmt.Errorf("%s: %w", uri, err)
	}
	return nil
}

// Clear removes the objects of this attempt and of earlier ones, which are long over.
func (b Board) Clear(ctx context.Context, attempt int) error {
	folder := checkpoint.Join(b.Directory, Folder)
	names, err := b.Store.List(ctx, folder, checkpoint.ListOptions{Prefix: "attempt-", Recursive: true})
	if err != nil {
		return err
	}
	for _, e := range names.Entries {
		var n int
		if _, err := fmt.Sscanf(e.Name, "attempt-%d/", &n); err != nil || n > attempt {
			continue
		}
		err := b.Store.Delete(ctx, checkpoint.Join(folder, e.Name), e.Generation)
		if err != nil && !errors.Is(err, checkpoint.ErrNotExist) && !errors.Is(err, checkpoint.ErrConflict) {
			return err
		}
	}
	return nil
}

// Sign is a sign of life: whose it is, and its generation; 0 is none.
type Sign struct {
	Life       string    `json:"life"`
	At         time.Time `json:"at"`
	Generation int64     `json:"-"`
}

// Beat gives the sign of life of a crew that trains under its own lease: another crew that wants the directory waits until
// it stops.
func (b Board) Beat(ctx context.Context, life string, now time.Time) error {
	last, err := b.Pulse(ctx)
	if err != nil {
		return err
	}
	return b.sign(ctx, Sign{Life: life, At: now}, last)
}

// Succeed gives the sign of life that comes right after the last one that the crew has seen of others. If somebody else gave one meanwhile, it
// is not given, and the error is checkpoint.ErrConflict.
func (b Board) Succeed(ctx context.Context, life string, now time.Time, seen int64) error {
	for {
		last, err := b.Pulse(ctx)
		if err != nil {
			return err
		}
		if last.Generation != seen && last.Life != life {
			return fmt.Errorf("sign of life: %w", checkpoint.ErrConflict)
		}
		if err := b.sign(ctx, Sign{Life: life, At: now}, last); !errors.Is(err, checkpoint.ErrConflict) {
			return err
		}
	}
}

func (b Board) sign(ctx context.Context, s, last Sign) error {
	s.At = s.At.UTC()
	content, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = b.Store.Put(ctx, b.holder(), content, last.Generation)
	return err
}

func (b Board) holder() string { return checkpoint.Join(b.Directory, Folder+"/"+holderName) }

// Pulse is the last sign of life. One that cannot be read has a generation all the same.
func (b Board) Pulse(ctx context.Context) (s Sign, err error) {
	o, err := b.Store.Get(ctx, b.holder())
	if errors.Is(err, checkpoint.ErrNotExist) {
		return s, nil
	}
	if json.Unmarshal(o.Content, &s) != nil {
		s = Sign{}
	}
	s.Generation = o.Generation
	return s, err
}

// The objects that a training leaves, beside those of its attempts.
const (
	holderName  = "holder.json"
	speedName   = "speed.json"
	batchesName = "batches.json"
)

// Trained reports whether crews have trained in the directory, and the last attempt that is over for a slice by their objects. A key, a
// lock, and that a slice is ready, are there before the first training. An attempt for which only other slices are ready may still begin,
// and so may the one for which this slice is ready now.
func (b Board) Trained(ctx context.Context, slice, now int) (trained bool, over int, err error) {
	names, err := b.Store.List(ctx, checkpoint.Join(b.Directory, Folder), checkpoint.ListOptions{Recursive: true})
	if errors.Is(err, checkpoint.ErrNotExist) {
		return false, 0, nil
	}
	for _, e := range names.Entries {
		var n, ready int
		var rest string
		if _, err := fmt.Sscanf(e.Name, "attempt-%d/%s", &n, &rest); err != nil {
			trained = trained || slices.Contains([]string{holderName, speedName, batchesName}, e.Name)
			continue
		}
		if _, err := fmt.Sscanf(rest, "ready-%d.json", &ready); err != nil {
			trained = true
		} else if ready != slice || n == now {
			n--
		}
		if n < events.MaxAttempt { // another one can follow
			over = max(over, n)
		}
	}
	return trained, over, err
}

// Speed is how fast one attempt trained, and on what.
type Speed struct {
	Attempt int `json:"attempt"`
	events.Measured
	// Chips are those of all slices.
	Chips             int       `json:"chips,omitzero"`
	ExamplesPerSecond float64   `json:"examples_per_second"`
	At                time.Time `json:"at"`
}

// keptSpeeds is of how many attempts the speed is kept.
const keptSpeeds = 50

// Speeds are the attempts whose speed is known, the oldest first.
func (b Board) Speeds(ctx context.Context) ([]Speed, error) {
	all, _, err := b.speeds(ctx)
	return all, err
}

func (b Board) speeds(ctx context.Context) (all []Speed, generation int64, err error) {
	o, err := b.Store.Get(ctx, b.speedsURI())
	if errors.Is(err, checkpoint.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if err := json.Unmarshal(o.Content, &all); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", b.speedsURI(), err)
	}
	return all, o.Generation, nil
}

// SetSpeed keeps the speed of an attempt, instead of what was kept of it before.
func (b Board) SetSpeed(ctx context.Context, s Speed) error {
	all, generation, err := b.speeds(ctx)
	if err != nil {
		return err
	}
	all = append(slices.DeleteFunc(all, func(o Speed) bool { return o.Attempt == s.Attempt }), s)
	content, err := json.Marshal(all[max(0, len(all)-keptSpeeds):])
	if err != nil {
		return err
	}
	_, err = b.Store.Put(ctx, b.speedsURI(), content, generation)
	return err
}

func (b Board) speedsURI() string { return checkpoint.Join(b.Directory, Folder+"/"+speedName) }

// Batches are the global batches that the training has had, from its first step on, and the generation of their object; none where
// nobody has written any.
func (b Board) Batches(ctx context.Context) (all []topology.Batch, generation int64, err error) {
	uri := b.batches()
	o, err := b.Store.Get(ctx, uri)
	if errors.Is(err, checkpoint.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if err := json.Unmarshal(o.Content, &all); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", uri, err)
	}
	for i, x := range all {
		if x.Size < 1 || i == 0 && x.From != 0 || i > 0 && x.From <= all[i-1].From {
			return nil, 0, fmt.Errorf("%s: %v are no batches of a training, one after the other", uri, all)
		}
	}
	return all, o.Generation, nil
}

// SetBatches replaces the batches of that generation.
func (b Board) SetBatches(ctx context.Context, all []topology.Batch, generation int64) error {
	content, err := json.Marshal(all)
	if err != nil {
		return err
	}
	_, err = b.Store.Put(ctx, b.batches(), content, generation)
	return err
}

func (b Board) batches() string { return checkpoint.Join(b.Directory, Folder+"/"+batchesName) }
