// Package entries reads log entries out of the files of a person, on every processor, and says which it could not read.
package entries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"pitstop.internal/events"
	"pitstop.internal/scripts/logfile"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/terminal"
)

// memory is how much is used before the garbage collector runs more often.
const memory = 128 << 20

// Pool works on what files hold, on every processor. T is what comes of a run of entries.
type Pool[T any] struct {
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

// NewPool starts workers that end with ctx. Work gets how many items of the stream come before. Its result
// still holds an earlier run, whose memory it may use again.
func NewPool[T any](ctx context.Context, work func(items []logfile.Item, first int, result *T)) *Pool[T] {
	// Entries make much garbage and need little memory, unless they are very large.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(memory)
	p := &Pool[T]{jobs: make(chan *parcel[T])}
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

// Stream is a sequence of sources, read in order.
type Stream[T any] struct {
	ordered chan *parcel[T]
	free    chan *parcel[T]
	last    *parcel[T]
}

// Source opens a source of entries: it returns what fills a batch from it, and what closes it.
type Source func() (next func(*logfile.Batch) bool, end func())

// FilesOf are files as sources, "-" being standard input.
func FilesOf(names []string, in io.Reader, bar *terminal.Progress) (all []Source) {
	for _, name := range names {
		all = append(all, func() (func(*logfile.Batch) bool, func()) { return Batches(name, in, bar) })
	}
	return all
}

// InOrder are files as sources, each in the order of its times.
func InOrder(names []string, in io.Reader, bar *terminal.Progress) (all []Source) {
	for _, name := range names {
		all = append(all, func() (func(*logfile.Batch) bool, func()) {
			return reading(name, in, func(f io.Reader, name string) (func(*logfile.Batch) bool, func()) { return inOrder(f, name, bar) })
		})
	}
	return all
}

// Stream begins to read sources, one after the other, and keeps so many runs of entries under way.
func (p *Pool[T]) Stream(ctx context.Context, sources []Source, bar *terminal.Progress, underWay int) *Stream[T] {
	s := &Stream[T]{ordered: make(chan *parcel[T], underWay), free: make(chan *parcel[T], underWay)}
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
				bar.Entries(len(j.batch.Items))
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

// Next is what came of the next run of entries, and nil when there is none. It reuses the result that it gave before.
func (s *Stream[T]) Next(ctx context.Context) *T {
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

// Readings is what a run of entries says.
type Readings struct {
	All []logfile.Reading
}

// ReadAll reads a run of entries. It keeps no text of them.
func ReadAll(items []logfile.Item, _ int, r *Readings) {
	clear(r.All) // what is kept of an entry is not to be held by what comes after it
	r.All = r.All[:0]
	for _, it := range items {
		x := it.Read()
		x.Raw = nil
		r.All = append(r.All, x)
	}
}

// Batches opens a file and returns what fills a batch from it, and what closes it.
func Batches(name string, in io.Reader, bar *terminal.Progress) (next func(*logfile.Batch) bool, end func()) {
	return reading(name, in, func(f io.Reader, name string) (func(*logfile.Batch) bool, func()) {
		return logfile.NewSplitter(decode(bar.Reader(f)), name).Next, func() {}
	})
}

// reading opens a file and reads it.
func reading(name string, in io.Reader, read func(f io.Reader, name string) (next func(*logfile.Batch) bool, end func())) (func(*logfile.Batch) bool, func()) {
	if name == "-" {
		return read(in, "standard input")
	}
	f, err := OpenFile(name)
	if err != nil {
		return unusable(name, err), func() {}
	}
	next, end := read(f, name)
	return next, func() {
		end()
		_ = f.Close() //nolint:errcheck // it was only read
	}
}

// unusable fills one batch, with the fault of a whole file.
func unusable(name string, err error) (next func(*logfile.Batch) bool) {
	told := false
	return func(b *logfile.Batch) bool {
		b.Items = append(b.Items[:0], logfile.Item{Record: logfile.Record{File: name}, Err: logfile.Unusable(err)})
		told = !told
		return told
	}
}

// OpenFile opens a file, which a folder is not.
func OpenFile(name string) (*os.File, error) {
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

// RunsAtOnce is how many runs of entries of a stream are held at once: enough that no processor waits.
func RunsAtOnce(streams int) int { return max(2, (runtime.GOMAXPROCS(0)+2)/streams) }

// Faults tells what could not be read, and counts it.
type Faults struct {
	ErrOut io.Writer
	N      int
	// Unusable says that a whole file could not be read.
	Unusable bool
}

// mostTold is how many faults are told one by one.
const mostTold = 20

// Add tells a fault, unless there were too many, and counts it.
func (f *Faults) Add(err error) {
	f.N++
	f.Unusable = f.Unusable || errors.Is(err, logfile.ErrUnusable)
	if f.N <= mostTold {
		terminal.Print(f.ErrOut, "pitstop: "+cli.OneLine(err))
	}
}

// PrintRest says how many faults were not told.
func (f *Faults) PrintRest() {
	if more := f.N - mostTold; more > 0 {
		terminal.Print(f.ErrOut, "pitstop: "+events.Number(int64(more))+" more that could not be read; explain tells each")
	}
}

// PrintNone reports that there was no entry, and a likely reason.
func PrintNone(errOut io.Writer) {
	terminal.Print(errOut, "pitstop: 0 entries; gcloud logging read looks back one day, unless --freshness says more")
}
