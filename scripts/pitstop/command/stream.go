package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"pitstop.internal/scripts/logfile"
)

// memory is how much is used before the garbage collector runs more often.
const memory = 128 << 20

// pool works on what files hold, on every processor. T is what comes of a run of entries.
type pool[T any] struct {
	jobs chan *parcel[T]
}

// parcel is a run of entries on its way: split off, worked on, handed on in order, and used again.
type parcel[T any] struct {
	batch logfile.Batch
	// first is how many items of the stream come before this one.
	first  int
	result T
	done   chan struct{}
}

// newPool starts workers that end with ctx. Work gets how many items of the stream come before. Its result
// still holds an earlier run, whose memory it may use again.
func newPool[T any](ctx context.Context, work func(items []logfile.Item, first int, result *T)) *pool[T] {
	// Entries make much garbage and need little memory, unless they are very large.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(memory)
	p := &pool[T]{jobs: make(chan *parcel[T])}
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case j := <-p.jobs:
					work(j.batch.Items, j.first, &j.result)
					j.done <- struct{}{}
				}
			}
		}()
	}
	return p
}

// stream is a sequence of sources, read in order.
type stream[T any] struct {
	ordered chan *parcel[T]
	free    chan *parcel[T]
	last    *parcel[T]
}

// source opens a source of entries: it returns what fills a batch from it, and what closes it.
type source func() (next func(*logfile.Batch) bool, end func())

// filesOf are files as sources, "-" being standard input.
func filesOf(names []string, in io.Reader, bar *progress) (all []source) {
	for _, name := range names {
		all = append(all, func() (func(*logfile.Batch) bool, func()) { return split(name, in, bar) })
	}
	return all
}

// stream begins to read sources, one after the other, and keeps so many runs of entries under way.
func (p *pool[T]) stream(ctx context.Context, sources []source, bar *progress, underWay int) *stream[T] {
	s := &stream[T]{ordered: make(chan *parcel[T], underWay), free: make(chan *parcel[T], underWay)}
	for range underWay {
		s.free <- &parcel[T]{done: make(chan struct{}, 1)}
	}
	go func() {
		defer close(s.ordered)
		n := 0
		for _, open := range sources {
			next, end := open()
			more := true
			for more {
				var j *parcel[T]
				select {
				case <-ctx.Done():
					more = false
					continue
				case j = <-s.free:
				}
				if more = next(&j.batch); !more {
					s.free <- j
					continue
				}
				j.first = n
				n += len(j.batch.Items)
				bar.entries(len(j.batch.Items))
				s.ordered <- j // there is room for all
				select {
				case <-ctx.Done():
					more = false
				case p.jobs <- j:
				}
			}
			end()
			if ctx.Err() != nil {
				return
			}
		}
	}()
	return s
}

// next is what came of the next run of entries, and nil when there is none. It reuses the result that it gave before.
func (s *stream[T]) next(ctx context.Context) *T {
	if s.last != nil {
		s.free <- s.last
		s.last = nil
	}
	select {
	case <-ctx.Done():
		return nil
	case j := <-s.ordered:
		if j == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-j.done:
		}
		s.last = j
		return &j.result
	}
}

// readings is what a run of entries says.
type readings struct {
	all []logfile.Reading
}

// readAll reads a run of entries. It keeps no text of them.
func readAll(items []logfile.Item, _ int, r *readings) {
	clear(r.all) // what is kept of an entry is not to be held by what comes after it
	r.all = r.all[:0]
	for _, it := range items {
		x := it.Read()
		x.Raw = nil
		r.all = append(r.all, x)
	}
}

// split opens a file and returns what fills a batch from it, and what closes it.
func split(name string, in io.Reader, bar *progress) (next func(*logfile.Batch) bool, end func()) {
	if name == "-" {
		return logfile.NewSplitter(decoded(bar.reader(in)), "standard input").Next, func() {}
	}
	f, err := open(name)
	if err != nil {
		told := false
		return func(b *logfile.Batch) bool {
			b.Items = append(b.Items[:0], logfile.Item{Record: logfile.Record{File: name}, Err: logfile.Unusable(err)})
			told = !told
			return told
		}, func() {}
	}
	return logfile.NewSplitter(decoded(bar.reader(f)), name).Next, func() { _ = f.Close() } //nolint:errcheck // it was only read
}

func open(name string) (*os.File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		_ = f.Close() //nolint:errcheck // it is not read at all
		return nil, fmt.Errorf("%s: it is a folder; name the files in it", name)
	}
	return f, nil
}

// underWay is how many runs of entries of a stream are held at once: enough that no processor waits.
func underWay(streams int) int { return max(2, (runtime.GOMAXPROCS(0)+2)/streams) }
