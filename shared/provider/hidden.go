package provider

import (
	stdjson "encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	// shortest is the least length of a value, a line or an assigned part to be masked whole: shorter ones appear in many
	// messages by chance.
	shortest = 6
	// run is the length of any part of a value that is masked wherever it appears, because an error may quote or cut off a
	// part.
	run = 16
	// longest bounds the part of an error that is examined; the stored part is far shorter.
	longest = 64 << 10
)

// Hidden holds the values that an error of an API may repeat and that may be secrets, by key. Noun is what a masked text calls them, with
// the key after it. Known are words that everybody knows: a zone does not become a secret because a script names it.
type Hidden struct {
	Noun   string
	Values map[string]string
	Known  []string
}

// assigned matches the value that a line of a script or a settings file assigns to a name.
var assigned = regexp.MustCompile(`[A-Za-z0-9_-]["']?\s*[=:]\s*(?:"([^"]+)"|'([^']+)'|([^\s"']+))`)

// Mask replaces the parts of a text that repeat the values.
func (h Hidden) Mask(text string) string {
	if len(h.Values) == 0 || text == "" {
		return text
	}
	text = text[:min(len(text), longest)]
	by := make([]string, len(text)) // the key whose value a byte is part of
	cover := func(key string, at, n int) {
		for i := at; i < at+n; i++ {
			by[i] = key
		}
	}
	runs := map[string][]int{}
	for i := 0; i+run <= len(text); i++ {
		if part := text[i : i+run]; !h.knows(part) {
			runs[part] = append(runs[part], i)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(h.Values)) {
		value := h.Values[key]
		for _, form := range written(value) {
			for i := 0; i+run <= len(form); i++ {
				for _, at := range runs[form[i:i+run]] {
					cover(key, at, run)
				}
			}
		}
		for _, part := range parts(value) {
			for _, form := range written(part) {
				if len(form) < shortest || h.knows(form) {
					continue
				}
				for at := 0; ; at += len(form) {
					i := strings.Index(text[at:], form)
					if i < 0 {
						break
					}
					at += i
					cover(key, at, len(form))
				}
			}
		}
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case by[i] == "":
			b.WriteByte(text[i])
		case i == 0 || by[i-1] != by[i]:
			b.WriteString("[" + h.Noun + " " + by[i] + "]")
		}
	}
	return b.String()
}

// knows reports whether a part of a text is part of a word that everybody knows.
func (h Hidden) knows(part string) bool {
	return slices.ContainsFunc(h.Known, func(word string) bool { return strings.Contains(word, part) })
}

// parts are a value, its lines, and the values assigned in them.
func parts(value string) []string {
	all := []string{strings.TrimSpace(value)}
	for line := range strings.Lines(value) {
		all = append(all, strings.TrimSpace(line))
		for _, found := range assigned.FindAllStringSubmatch(line, -1) {
			all = append(all, found[1]+found[2]+found[3])
		}
	}
	return all
}

// written are the forms in which a text may appear in another one: as it is, on one line, and quoted.
func written(s string) []string {
	forms := []string{s, strings.Join(strings.Fields(s), " "), inside(strconv.Quote(s)), inside(strconv.QuoteToASCII(s))}
	if raw, err := stdjson.Marshal(s); err == nil {
		forms = append(forms, inside(string(raw)))
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// inside is a quoted text without its quotes.
func inside(quoted string) string { return quoted[1 : len(quoted)-1] }
