package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"pitstop.internal/events"
)

// readReach is how many entries of all sources are to be read in a second on one core.
const readReach = 150_000

// benchRead measures from an entry to a classified event, on one goroutine, over the entries of every source as
// events/testdata/sources mixes them.
func benchRead(ctx context.Context) ([]figure, error) {
	entries, err := corpus(filepath.Join("events", "testdata", "sources"))
	if err != nil {
		return nil, err
	}
	var read int
	var size int64
	start := time.Now()
	for time.Since(start) < 3*time.Second {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, e := range entries {
			if _, err := events.Read(e); err != nil {
				return nil, err
			}
			read++
			size += int64(len(e))
		}
	}
	rate := float64(read) / time.Since(start).Seconds()
	return []figure{{
		what:  fmt.Sprintf("entries of all sources read in a second on one core, %d bytes each", size/int64(read)),
		value: fmt.Sprintf("%.0f", rate), reach: fmt.Sprintf("at least %d", readReach), ok: rate >= readReach,
	}}, nil
}

// corpus reads the entries of all sources, each in many places so that nothing is read from a cache of strings.
func corpus(dir string) ([][]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, f := range files {
		if filepath.Base(f) == "want.json" {
			continue
		}
		raw, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		var entries []json.RawMessage
		if err := json.Unmarshal(raw, &entries); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		for i := range 32 {
			place := fmt.Appendf(nil, "%08x", i*2654435761%(1<<32))
			for _, e := range entries {
				out = append(out, bytes.ReplaceAll(e, []byte("3f2a9c01"), place))
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New(dir + " holds no entries; run it from the folder of go.mod")
	}
	return out, nil
}
