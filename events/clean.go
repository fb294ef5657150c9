package events

import (
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// clean turns every string in v, a pointer to a struct, into one line that a terminal shows and does not obey. Every text
// from outside passes through here before it leaves this package. Unprintable characters are replaced, not dropped, so that
// a name cannot turn into another one that exists.
func clean(v any) { cleanValue(reflect.ValueOf(v).Elem()) }

var timeType = reflect.TypeFor[time.Time]()

func cleanValue(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // no other kind holds strings here
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

// shown reports whether a terminal shows a string as it is. These are not graphic: the control characters of C0 and C1,
// which move the cursor and more; marks that change the text's direction or have no width, which make one name look like
// another; separators of lines and paragraphs; characters of no script.
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
