package events

import (
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// clean makes one line that a terminal shows and does not obey of every string in v, a pointer to a struct. What comes from
// outside leaves this package only through here. Names become none that exist, because what cannot be shown is replaced and
// not left out.
func clean(v any) { cleanValue(reflect.ValueOf(v).Elem()) }

var timeType = reflect.TypeFor[time.Time]()

func cleanValue(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // nothing else holds strings here
	case reflect.String:
		if s := v.String(); !shown(s) {
			v.SetString(shownOf(s))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			cleanValue(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			cleanValue(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == timeType {
			return
		}
		for i := range v.NumField() {
			cleanValue(v.Field(i))
		}
	}
}

// shown reports whether a terminal shows a string as it is. Nothing else is graphic: the control characters of C0 and C1, which
// move the cursor and more; those that turn the direction of what follows or have no width, with which one name looks like
// another; the separators of lines and paragraphs, and what belongs to no script.
func shown(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return utf8.ValidString(s) && !strings.ContainsFunc(s, hidden)
		}
	}
	return true
}

func hidden(r rune) bool { return !unicode.IsGraphic(r) }

func shownOf(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case !hidden(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return utf8.RuneError
	}, s)
}
