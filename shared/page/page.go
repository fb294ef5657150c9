// Package page renders what Pitstop knows as pages for a browser: how the fleet stands, an incident, all incidents, what they add up to, and where the time went. It shows
// views and infers nothing. A page needs no script, and fetches nothing but its style sheet; a page that is kept as a file has that inside.
package page

import (
	"embed"
	"errors"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"pitstop.internal/events"
	"pitstop.internal/shared/ledger"
)

//go:embed *.html
var files embed.FS

// Style is the style sheet of all pages.
//
//go:embed style.css
var Style string

var templates = template.Must(template.New("page").Funcs(template.FuncMap{
	"stamp": stamp, "clock": clock, "short": short, "cause": causeText, "x": units,
	"style": func() template.CSS { return template.CSS(Style) }, //nolint:gosec // our own file
}).ParseFS(files, "*.html"))

// Frame is what surrounds the contents of a page.
type Frame struct {
	Title string
	// Path is that of the page, by which the menu knows it.
	Path string
	// At is the time for which the page is true.
	At time.Time
	// Alone says that the page is kept as a file: its style is inside, and it links to no other page.
	Alone bool
	// Unread are the documents that belong on the page and cannot be read, each with the reason.
	Unread []string
}

// without notes which documents cannot be read, and returns every other error.
func (f *Frame) without(err error) error {
	var unread ledger.UnreadableError
	if !errors.As(err, &unread) {
		return err
	}
	for _, u := range strings.Split(unread.Error(), "\n") {
		if !slices.Contains(f.Unread, u) { // a page may read one twice
			f.Unread = append(f.Unread, u)
		}
	}
	return nil
}

// render writes the page of that name.
func render(out io.Writer, name string, data any) error {
	return templates.ExecuteTemplate(plain{out}, name, data)
}

// plain leaves out what would change how the text around it is read: marks of direction that nobody sees, and control characters. A name that holds
// them shows a replacement.
type plain struct{ to io.Writer }

// Write implements io.Writer.
func (p plain) Write(b []byte) (int, error) {
	text := strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, string(b))
	if _, err := io.WriteString(p.to, text); err != nil {
		return 0, err
	}
	return len(b), nil
}

// short cuts a name to what fits before a picture.
func short(name string) string {
	const most = 24
	if r := []rune(name); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return name
}

// causeText is a cause for people.
func causeText(c events.Cause) string { return strings.ReplaceAll(string(c), "_", " ") }

// stamp is a time for people; empty for none.
func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("Jan 2 15:04:05")
}

// clock is the time of a day.
func clock(at time.Time) string { return at.UTC().Format("15:04:05") }

// units writes a place in a picture.
func units(x float64) string { return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0") }

// oneDecimal is a number for people.
func oneDecimal(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }
