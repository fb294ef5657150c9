// Package story has the English of the heart. A decision stores which sentence it means, and the words in it. The sentences stand here, in
// one place.
package story

import (
	"slices"
	"strings"
)

// Sentence is a sentence, with % in the places of its words. A stored one stays readable when a later release says it in another way.
type Sentence string

// Reason is a sentence with what stands in it.
type Reason struct {
	Sentence Sentence `json:"sentence,omitzero"`
	Args     []string `json:"args,omitempty"`
}

// With is the sentence with these words in it, in its order.
func (s Sentence) With(args ...string) Reason { return Reason{s, args} }

// Equal reports whether two reasons say the same.
func (r Reason) Equal(o Reason) bool { return r.Sentence == o.Sentence && slices.Equal(r.Args, o.Args) }

// String is the sentence in English; empty for no reason.
func (r Reason) String() string {
	parts := strings.Split(string(r.Sentence), "%")
	var b strings.Builder
	for i, part := range parts {
		b.WriteString(part)
		if i < len(parts)-1 && i < len(r.Args) {
			b.WriteString(r.Args[i])
		}
	}
	return strings.TrimSpace(b.String())
}

// IsZero reports whether there is no reason.
func (r Reason) IsZero() bool { return r.Sentence == "" }

// List names slices: of many, the first ones, without the number of the others. A line is stored with each story, and each further slice
// would make another line.
func List(names []string) string {
	const most = 16
	if len(names) > most {
		names = append(names[:most:most], "and others")
	}
	return strings.Join(names, ", ")
}
