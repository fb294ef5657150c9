package page

import (
	"cmp"
	"io"
	"slices"
	"strconv"
)

// Report is a page of lines, tables and pictures that others have made. It is kept as a file.
type Report struct {
	Frame
	Parts []Part
}

// Part is lines, a picture, and a table with its title, whose first row has the names of the columns; each may be missing.
type Part struct {
	Lines []string
	Title string
	Rows  [][]string

	Cascade *Cascade
	Strips  *Strips
	Curve   *Curve
	Columns *Columns
}

// Heading is the title of the picture; empty where there is none.
func (p Part) Heading() string {
	switch {
	case p.Cascade != nil:
		return p.Cascade.Title
	case p.Strips != nil:
		return p.Strips.Title
	case p.Curve != nil:
		return p.Curve.Title
	case p.Columns != nil:
		return p.Columns.Title
	}
	return ""
}

// Names are the names of the columns, and Cells the other rows.
func (p Part) Names() []string { return p.Rows[0] }

// Cells are the rows of a table below its names.
func (p Part) Cells() [][]string { return p.Rows[1:] }

// WriteReport writes the page.
func WriteReport(out io.Writer, r Report) error {
	r.Alone = true
	return render(out, "report", r)
}

// Part is the picture with a table of the same numbers: a row for each month and zone.
func (c *Columns) Part() Part {
	rows := [][]string{{"month", "zone", c.Unit}}
	for m, zones := range c.counts {
		for z, n := range zones {
			rows = append(rows, []string{m, z, strconv.Itoa(n)})
		}
	}
	slices.SortFunc(rows[1:], func(a, b []string) int { return cmp.Or(cmp.Compare(b[0], a[0]), cmp.Compare(a[1], b[1])) })
	return Part{Title: "the same as a table", Rows: rows, Columns: c}
}
