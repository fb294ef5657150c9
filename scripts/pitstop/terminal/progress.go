package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"

	"pitstop.internal/events"
	"pitstop.internal/scripts/layout"
)

// Progress shows how far the reading of large files is, but only on a terminal. A nil one shows nothing.
type Progress struct {
	bar   *progressbar.ProgressBar
	began time.Time
	read  atomic.Int64
	told  atomic.Int64 // when it was shown last, in nanoseconds since it began
}

// NewProgress is nil without a terminal to show it on, and where the results go to that same terminal.
func NewProgress(files []string, out, errOut io.Writer) *Progress {
	if !IsTerminal(errOut) || out != nil && IsTerminal(out) {
		return nil
	}
	total := int64(0)
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			total = -1 // not known
			break
		}
		total += info.Size()
	}
	return &Progress{began: time.Now(), bar: progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(file(errOut)), progressbar.OptionShowBytes(true), progressbar.OptionShowTotalBytes(true), progressbar.OptionSetWidth(30),
		progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())}
}

// Entries counts entries that were read.
func (p *Progress) Entries(n int) {
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

// Reader counts the bytes of a file.
func (p *Progress) Reader(r io.Reader) io.Reader {
	if p == nil {
		return r
	}
	return counted{p.bar, r, nil}
}

// ReaderAt counts the bytes of a file that is read in another order.
func (p *Progress) ReaderAt(r io.ReaderAt) io.ReaderAt {
	if p == nil {
		return r
	}
	return counted{p.bar, nil, r}
}

// counted is a file whose bytes are counted. More of them than there were at first are no fault.
type counted struct {
	bar *progressbar.ProgressBar
	r   io.Reader
	at  io.ReaderAt
}

// Read implements io.Reader.
func (c counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	_ = c.bar.Add(n) //nolint:errcheck // it is only for the eye
	return n, err
}

// ReadAt implements io.ReaderAt.
func (c counted) ReadAt(b []byte, off int64) (int, error) {
	n, err := c.at.ReadAt(b, off)
	_ = c.bar.Add(n) //nolint:errcheck // likewise
	return n, err
}

// Done removes it from the terminal.
func (p *Progress) Done() {
	if p != nil {
		_ = p.bar.Finish() //nolint:errcheck // it is only for the eye
		_ = p.bar.Clear()  //nolint:errcheck // likewise
	}
}

// How often a meter shows how far a run is.
const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 5 * time.Second
)

// Meter shows how far a long run is: a bar on a terminal, and a line every few seconds elsewhere.
type Meter struct {
	out   io.Writer
	now   func() time.Time
	width int

	mu    sync.Mutex
	bar   *progressbar.ProgressBar // nil without a terminal
	began time.Time
	told  time.Time
}

// NewMeter starts a meter. The clock is the caller's.
func NewMeter(out io.Writer, now func() time.Time) *Meter {
	m := &Meter{out: out, now: now, width: min(layout.Width(), meterWidth), began: now()}
	m.told = m.began
	if IsTerminal(out) {
		m.bar = newBar(file(out))
	}
	return m
}

// barParts is how many parts a bar has, and barWidth how many columns it takes at most. With the text beside it those are meterWidth,
// which every terminal has.
const (
	barParts   = 1000
	barWidth   = 24
	meterWidth = 80
)

func newBar(out io.Writer) *progressbar.ProgressBar {
	return progressbar.NewOptions(barParts, progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(barWidth),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false), progressbar.OptionShowDescriptionAtLineEnd(), progressbar.OptionSetRenderBlankState(false),
		progressbar.OptionUseANSICodes(true))
}

// Show shows how far the run is: its share from 0 to 1, words for the work done, and a count of one unit. The share of work whose end
// is unknown is 0.
func (m *Meter) Show(share float64, done []string, count float64, unit string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	every := lineEvery
	if m.bar != nil {
		every = barEvery
	}
	if now.Sub(m.told) < every {
		return
	}
	m.told = now
	took := now.Sub(m.began)
	if rate := count / took.Seconds(); rate >= 0.05 { // a slower one would read as 0.0
		done = append(done, rateText(rate)+" "+unit+"/s")
	}
	if share > 0 && share < 1 {
		done = append(done, events.Span(time.Duration(float64(took)*(1-share)/share))+" left")
	}
	text := strings.Join(done, " · ")
	if m.bar == nil {
		Print(m.out, "pitstop: "+text)
		return
	}
	m.bar.Describe(fitting(done, m.width-len(" 100%  ")-barWidth/4))
	_ = m.bar.Set(min(int(share*barParts), barParts-1)) //nolint:errcheck // it is only for the eye
}

// rateText is a rate with one decimal where it is small.
func rateText(rate float64) string {
	if rate < 10 {
		return fmt.Sprintf("%.1f", rate)
	}
	return events.Number(int64(rate))
}

// fitting joins as many parts as a line has room for. The last one, the time left, comes before those in the middle.
func fitting(parts []string, width int) string {
	for len(parts) > 2 && Columns(strings.Join(parts, " · ")) > width {
		parts = append(parts[:len(parts)-2:len(parts)-2], parts[len(parts)-1])
	}
	return strings.Join(parts, " · ")
}

// Clear removes the bar, so that other text can be printed. The next Show brings it back.
func (m *Meter) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bar != nil {
		_ = m.bar.Clear() //nolint:errcheck // it is only for the eye
	}
}
