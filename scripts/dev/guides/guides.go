// Package guides reads the table "What the guides ask" in functions/README.md. Tests beside each command run what it names.
package guides

import (
	"fmt"
	"regexp"
	"strings"
)

// heading begins the section; each guide has a heading below it.
const heading = "## What the guides ask"

// noCommand begins the last cell of a row that no command can show. The reason follows it.
const noCommand = "no command: "

// Row is a statement of one of Google's guides.
type Row struct {
	// Guide is the heading above the row. Asks is the statement, Does is Pitstop's part in it.
	Guide, Asks, Does string
	// Command shows that, and Prints are texts that it prints.
	Command string
	Prints  []string
	// Reason says why no command shows it; it is empty where one does.
	Reason string
}

var code = regexp.MustCompile("`+ ?([^`]+?) ?`+")

// Read reads the rows of a page.
func Read(page string) ([]Row, error) {
	_, section, found := strings.Cut(page, "\n"+heading+"\n")
	if !found {
		return nil, fmt.Errorf("the page has no heading %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []Row
	guide := ""
	for line := range strings.SplitSeq(section, "\n") {
		if title, ok := strings.CutPrefix(line, "### "); ok {
			guide = title
		}
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| the guide says |") {
			continue
		}
		r, err := read(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %s", guide, err, line)
		}
		r.Guide = guide
		rows = append(rows, r)
	}
	return rows, nil
}

func read(line string) (Row, error) {
	cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
	if len(cells) != 3 {
		return Row{}, fmt.Errorf("the row has %d cells; it needs 3", len(cells))
	}
	r := Row{Asks: cells[0], Does: cells[1]}
	if r.Asks == "" || r.Does == "" {
		return Row{}, fmt.Errorf("the row has an empty cell")
	}
	if why, ok := strings.CutPrefix(cells[2], noCommand); ok {
		if len(strings.Fields(why)) < 4 {
			return Row{}, fmt.Errorf("the row gives no reason for having no command")
		}
		r.Reason = why
		return r, nil
	}
	spans := code.FindAllStringSubmatch(cells[2], -1)
	if len(spans) < 2 {
		return Row{}, fmt.Errorf("the row needs a command and a text that it prints, or %q and a reason", noCommand)
	}
	r.Command = spans[0][1]
	for _, s := range spans[1:] {
		r.Prints = append(r.Prints, s[1])
	}
	return r, nil
}
