package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"

	"pitstop.internal/events"
)

// progress shows how far the reading of large files is, on a terminal alone. A nil one shows nothing.
type progress struct {
	bar   *progressbar.ProgressBar
	began time.Time
	read  atomic.Int64
	told  atomic.Int64 // when it was told last, in nanoseconds since it began
}

// newProgress is nil where there is no terminal to show it on, or where the results go to that same terminal.
func newProgress(files []string, out, errOut io.Writer) *progress {
	if !terminal(errOut) || out != nil && terminal(out) {
		return nil
	}
	total := int64(0)
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			total = -1 // nobody knows
			break
		}
		total += info.Size()
	}
	return &progress{began: time.Now(), bar: progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(file(errOut)), progressbar.OptionShowBytes(true), progressbar.OptionShowTotalBytes(true), progressbar.OptionSetWidth(30),
		progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())}
}

// entries notes that so many more were read.
func (p *progress) entries(n int) {
	if p == nil {
		return
	}
	all := p.read.Add(int64(n))
	took := time.Since(p.began)
	if took-time.Duration(p.told.Load()) < 200*time.Millisecond {
		return
	}
	p.told.Store(int64(took))
	p.bar.Describe(fmt.Sprintf("%s entries, %s per second", events.Number(all), events.Number(int64(float64(all)/took.Seconds()))))
}

// reader counts what is read of a file.
func (p *progress) reader(r io.Reader) io.Reader {
	if p == nil {
		return r
	}
	return io.TeeReader(r, p.bar)
}

// done takes it off the terminal.
func (p *progress) done() {
	if p != nil {
		_ = p.bar.Finish() //nolint:errcheck // it is only shown
		_ = p.bar.Clear()  //nolint:errcheck // likewise
	}
}
