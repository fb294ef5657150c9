package logs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/scripts/logfile"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/cloudlog"
)

const (
	// pageEvery is the least time between two pages: a project may list entries 60 times a minute.
	pageEvery = time.Second
	// quotaAgain is how long the reader waits once that quota is used up, by whomever, and quotaTries how often in a row.
	quotaAgain = 30 * time.Second
	quotaTries = 4
)

// logReader reads the log of a project page by page, the oldest entries first, as the text of the answers.
type logReader struct {
	deployment.Deployment
	// ctx is that of the verb: each page is an inquiry of its own.
	ctx context.Context //nolint:containedctx // a reader is given none
	// fail is told why the log cannot be read to its end.
	fail        context.CancelCauseFunc
	log         *cloudlog.Log
	project     string
	from, until time.Time
	meter       *terminal.Meter
	errOut      io.Writer

	// page is what is left of the page that was read last, token that of the next one, and next when that may be asked for.
	page         bytes.Buffer
	token        string
	next         time.Time
	begun, ended bool
	read         int
}

// open is the log as a source.
func (r *logReader) open() (next func(*logfile.Batch) bool, end func()) {
	return logfile.NewSplitter(r, "log of "+r.project).Next, r.meter.Clear
}

// Read implements io.Reader.
func (r *logReader) Read(p []byte) (int, error) {
	for r.page.Len() == 0 {
		if r.ended || r.begun && r.token == "" {
			return 0, io.EOF
		}
		if err := r.nextPage(); err != nil {
			r.ended = true
			r.meter.Clear()
			r.fail(err)
		}
	}
	return r.page.Read(p)
}

// nextPage reads the next page. Where it is begun and the quota is used up, it waits: what was read would be lost.
func (r *logReader) nextPage() error {
	if wait := r.next.Sub(r.Now()); r.begun && wait > 0 {
		if err := r.Sleep(r.ctx, wait); err != nil {
			return err
		}
	}
	entries, often, err := r.askPage()
	for try := 1; try < quotaTries && r.begun && often; try++ {
		r.meter.Clear()
		terminal.Print(r.errOut, "pitstop: Cloud Logging takes no more calls for project "+r.project+" for now; it is asked again in "+events.Span(quotaAgain))
		if err = r.Sleep(r.ctx, quotaAgain); err != nil {
			return err
		}
		entries, often, err = r.askPage()
	}
	if err != nil {
		return err
	}
	r.begun = true
	r.page.WriteString(`{"entries":[`)
	r.page.Write(bytes.Join(entries, []byte(",\n")))
	r.page.WriteString("]}\n")
	r.read += len(entries)
	r.meter.Show(r.shareRead(entries), []string{events.Number(int64(r.read)) + " entries read"}, float64(r.read), "entries")
	return nil
}

// askPage asks for the next page. Often says that the quota of calls is used up.
func (r *logReader) askPage() (entries [][]byte, often bool, err error) {
	r.next = r.Now().Add(pageEvery)
	looking, end := google.NextQuestion(r.ctx)
	entries, token, err := r.log.Page(looking, r.project, events.Whole(events.Sinks(events.Accounts{})), r.from, r.token)
	if err == nil {
		r.token = token
	}
	return entries, errors.Is(err, cloudlog.ErrTooOften), end(err)
}

// shareRead is how much of the time that is read lies before the last of these entries.
func (r *logReader) shareRead(entries [][]byte) float64 {
	var last struct {
		Timestamp time.Time `json:"timestamp"`
	}
	if len(entries) == 0 || json.Unmarshal(entries[len(entries)-1], &last) != nil {
		return 0
	}
	return float64(last.Timestamp.Sub(r.from)) / float64(r.until.Sub(r.from))
}
