package logs

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/goodput"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/page"
)

// printed takes what a printer prints, for a page.
type printed struct {
	text  bytes.Buffer
	parts []page.Part
}

// printer is one whose lines and tables are taken.
func (k *printed) printer() *terminal.Printer {
	return &terminal.Printer{Out: &k.text, TakeTable: func(title string, rows [][]string) {
		k.lines()
		k.parts = append(k.parts, page.Part{Title: title, Rows: rows})
	}}
}

// lines are those that were printed since the last table.
func (k *printed) lines() {
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

// monthly counts the losses of each month.
type monthly struct{ page.Columns }

func newMonthly() monthly {
	return monthly{page.Columns{Name: "months", Title: "Losses by month and zone", Unit: "losses"}}
}

func (m *monthly) count(l goodput.Loss) {
	if !l.At.IsZero() {
		m.Add(l.At.UTC().Format(page.Month), l.Zone, 1)
	}
}

// reportPage keeps a report as a page.
type reportPage struct {
	*reportPrinter
	printed
	months monthly
	// out is where the report would be printed, and file where the page is kept.
	out  io.Writer
	file string
}

func newReportPage(p *reportPrinter, file string) *reportPage {
	k := &reportPage{reportPrinter: p, out: p.Out, file: file, months: newMonthly()}
	p.Printer = k.printer()
	return k
}

// loss counts a loss in its month too.
func (k *reportPage) loss(l goodput.Loss) {
	k.months.count(l)
	k.reportPrinter.loss(l)
}

// end writes the page. The report is of what happened by the end of the record.
func (k *reportPage) end(ctx context.Context, r goodput.Report, faults int) error {
	if err := k.reportPrinter.end(ctx, r, faults); err != nil {
		return err
	}
	k.lines()
	parts := k.parts
	if r.Total.Losses > 0 && len(parts) > 0 {
		parts = slices.Insert(parts, 1, k.months.Part())
	}
	return cli.Keep(k.out, k.file, func(file io.Writer) error {
		return page.WriteReport(file, page.Report{Frame: page.Frame{Title: "What happened to TPUs", At: r.To}, Parts: parts})
	})
}
