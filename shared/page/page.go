// Package page renders what Pitstop knows as pages for a browser: how the fleet stands, an incident, and all incidents. It shows views and
// infers nothing. A page needs no script, and fetches nothing but its style sheet; a page that is kept as a file has that inside.
package page

import (
	"embed"
	"html/template"
	"io"
	"strings"
	"time"

	"pitstop.internal/events"
)

//go:embed *.html
var files embed.FS

// Style is the style sheet of all pages.
//
//go:embed style.css
var Style string

var templates = template.Must(template.New("page").Funcs(template.FuncMap{
	"stamp": stamp, "span": events.Span, "short": short, "cause": causeText, "number": events.Number, "style": func() template.CSS { return template.CSS(Style) }, //nolint:gosec // our own file
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
}

// render writes the page of that name.
func render(out io.Writer, name string, data any) error {
	return templates.ExecuteTemplate(out, name, data)
}

// short cuts a name to what fits before a picture.
func short(name string) string {
	const most = 26
	if r := []rune(name); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return name
}

// causeText is a cause for people.
func causeText(c events.Cause) string { return strings.ReplaceAll(string(c), "_", " ") }
