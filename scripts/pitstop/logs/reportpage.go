package logs

import (
	"bytes"
	"context"
	"io"
	"strings"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/goodput"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/page"
)

// reportPage takes what a report prints, for a page.
type reportPage struct {
	*reportPrinter
	// out is where the report would be printed, and file where the page is kept.
	out  io.Writer
	file string

	text   bytes.Buffer
	parts  []page.Part
	months page.Columns
}

// newReportPage keeps what a printer prints.
func newReportPage(p *reportPrinter, file string) *reportPage {
	k := &reportPage{reportPrinter: p, out: p.Out, file: file}
	p.Printer = &terminal.Printer{Out: &k.text, TakeTable: func(title string, rows [][]string) {
		k.lines()
		k.parts = append(k.parts, page.Part{Title: title, Rows: rows})
	}}
	return k
}

// lines are those that were printed since the last table.
func (k *reportPage) lines() {
	var lines []string
	for l := range strings.Lines(k.text.String()) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	k.text.Reset()
	if len(lines) > 0 {
		k.parts = append(k.parts, page.Part{Lines: lines})
	}
}

// loss counts a loss in its month too.
func (k *reportPage) loss(l goodput.Loss) {
	if !l.At.IsZero() {
		k.months.Add(l.At.UTC().Format(page.Month), l.Zone, 1)
	}
	k.reportPrinter.loss(l)
}

// end writes the page. The report is of what happened by the end of the record.
func (k *reportPage) end(ctx context.Context, r goodput.Report, faults int) error {
	if err := k.reportPrinter.end(ctx, r, faults); err != nil {
		return err
	}
	k.lines()
	return cli.Keep(k.out, k.file, func(file io.Writer) error {
		return page.WriteReport(file, page.Report{Frame: page.Frame{Title: "What happened to TPUs", At: r.To}, Months: k.months, Parts: k.parts})
	})
}
