package page

import "io"

// Report is a page of lines and tables that others have made, with the picture of what was lost in which month. It is kept as a file.
type Report struct {
	Frame
	Months Columns
	Parts  []Part
}

// Part is lines, or a table with its title, whose first row has the names of the columns.
type Part struct {
	Lines []string
	Title string
	Rows  [][]string
}

// Names are the names of the columns, and Cells the other rows.
func (p Part) Names() []string { return p.Rows[0] }

// Cells are the rows of a table below its names.
func (p Part) Cells() [][]string { return p.Rows[1:] }

// WriteReport writes the page.
func WriteReport(out io.Writer, r Report) error {
	r.Alone = true
	r.Months.Name, r.Months.Title, r.Months.Unit = "months", "Losses by month and zone", "losses"
	return render(out, "report", r)
}
