package logs

import (
	"bytes"
	"slices"
	"strings"

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

// months are the losses of each month.
func months(all []goodput.Loss) page.Part {
	m := page.Columns{Name: "months", Title: "Losses by month and zone", Unit: "losses"}
	for _, l := range all {
		if !l.At.IsZero() {
			m.Add(l.At.UTC().Format(page.Month), l.Zone, 1)
		}
	}
	return m.Part()
}

// page is the report as a page. It is of what happened by the end of the record.
func (*reportTeller) page(a account, parts []page.Part) page.Report {
	if len(a.Losses) > 0 {
		parts = slices.Insert(parts, 1, months(a.Losses))
	}
	return page.Report{Frame: page.Frame{Title: "What happened to TPUs", At: a.To}, Parts: parts}
}
