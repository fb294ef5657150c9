package gketest

import (
	"maps"
	"slices"
	"strings"
)

// object is an object of the API, or a part of one, as JSON has it.
type object = map[string]any

// field walks down into an object; nil is nothing there.
func field(o any, path ...string) any {
	for _, step := range path {
		m, ok := o.(object)
		if !ok {
			return nil
		}
		o = m[step]
	}
	return o
}

// text is a string in an object, or empty.
func text(o any, path ...string) string {
	s, _ := field(o, path...).(string)
	return s
}

// number is a number in an object, or what it is otherwise.
func number(o any, otherwise int, path ...string) int {
	switch n := field(o, path...).(type) {
	case float64:
		return int(n)
	case int:
		return n
	}
	return otherwise
}

func truth(o any, path ...string) bool {
	b, _ := field(o, path...).(bool)
	return b
}

// list is a list in an object, or empty.
func list(o any, path ...string) []any {
	l, _ := field(o, path...).([]any)
	return l
}

// put sets a value and makes the objects above it.
func put(o object, value any, path ...string) {
	for _, step := range path[:len(path)-1] {
		next, ok := o[step].(object)
		if !ok {
			next = object{}
			o[step] = next
		}
		o = next
	}
	o[path[len(path)-1]] = value
}

// drop removes a value.
func drop(o object, path ...string) {
	if parent, ok := field(o, path[:len(path)-1]...).(object); ok {
		delete(parent, path[len(path)-1])
	}
}

// clone copies a value with everything in it.
func clone[T any](v T) T {
	var deep func(any) any
	deep = func(v any) any {
		switch v := v.(type) {
		case object:
			m := make(object, len(v))
			for k, x := range v {
				m[k] = deep(x)
			}
			return m
		case []any:
			l := make([]any, len(v))
			for i, x := range v {
				l[i] = deep(x)
			}
			return l
		}
		return v
	}
	c, _ := deep(v).(T)
	return c
}

// merge applies a JSON merge patch (RFC 7386).
func merge(target any, patch object) object {
	t, ok := target.(object)
	if !ok {
		t = object{}
	}
	for k, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(t, k)
		case object:
			t[k] = merge(t[k], v)
		default:
			t[k] = v
		}
	}
	return t
}

// The parts of an object that every kind has.

func uidOf(o object) string  { return text(o, "metadata", "uid") }
func nameOf(o object) string { return text(o, "metadata", "name") }
func keyOf(o object) string  { return text(o, "metadata", "namespace") + "/" + nameOf(o) }

func label(o object, name string) string { return text(o, "metadata", "labels", name) }

func isDeleting(o object) bool { return text(o, "metadata", "deletionTimestamp") != "" }

func finalizers(o object) (all []string) {
	for _, f := range list(o, "metadata", "finalizers") {
		if s, ok := f.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

func setFinalizers(o object, all []string) {
	if len(all) == 0 {
		drop(o, "metadata", "finalizers")
		return
	}
	l := make([]any, len(all))
	for i, f := range all {
		l[i] = f
	}
	put(o, l, "metadata", "finalizers")
}

// unhold removes a finalizer, and reports whether it was there.
func unhold(o object, name string) bool {
	all := finalizers(o)
	i := slices.Index(all, name)
	if i < 0 {
		return false
	}
	setFinalizers(o, slices.Delete(all, i, i+1))
	return true
}

// controller is the UID of the object that owns this one and takes care of it.
func controller(o object) string {
	for _, r := range list(o, "metadata", "ownerReferences") {
		if truth(r, "controller") {
			return text(r, "uid")
		}
	}
	return ""
}

func owned(kind, apiVersion string, owner object) []any {
	return []any{object{
		"apiVersion": apiVersion, "kind": kind, "name": nameOf(owner), "uid": uidOf(owner), "controller": true, "blockOwnerDeletion": true,
	}}
}

// condition is the condition of that type; nil is none.
func condition(o object, typ string) object {
	for _, c := range list(o, "status", "conditions") {
		if m, ok := c.(object); ok && text(m, "type") == typ {
			return m
		}
	}
	return nil
}

func holds(o object, typ string) bool { return text(condition(o, typ), "status") == "True" }

// hold sets a condition, and reports whether that changed it.
func hold(o object, now, typ, status, reason, message string) bool {
	c := condition(o, typ)
	if c != nil && text(c, "status") == status && text(c, "reason") == reason && text(c, "message") == message {
		return false
	}
	n := object{"type": typ, "status": status, "reason": reason, "message": message, "lastTransitionTime": now, "lastProbeTime": now}
	if c != nil {
		if text(c, "status") == status {
			n["lastTransitionTime"] = c["lastTransitionTime"]
		}
		clear(c)
		maps.Copy(c, n)
		return true
	}
	put(o, append(list(o, "status", "conditions"), n), "status", "conditions")
	return true
}

// labels are those that a template has, with more.
func labels(o any, more map[string]string, path ...string) object {
	all, _ := clone(field(o, path...)).(object)
	if all == nil {
		all = object{}
	}
	for k, v := range more {
		all[k] = v
	}
	return all
}

// selector is a label selector: every requirement has to fit.
type selector []requirement

type requirement struct {
	key    string
	values []string
	// absent fits where the label is not there, or has none of the values; else the label has to be there, with one of the values if
	// there are any.
	absent bool
}

// parseSelector reads a label selector as kubectl takes it.
func parseSelector(s string) (selector, bool) {
	var all selector
	for s = strings.TrimSpace(s); s != ""; {
		part, rest := s, ""
		if i := strings.IndexAny(s, ",("); i >= 0 && s[i] == ',' {
			part, rest = s[:i], s[i+1:]
		} else if i >= 0 {
			j := strings.IndexByte(s, ')')
			if j < 0 {
				return nil, false
			}
			part, rest = s[:j+1], strings.TrimPrefix(s[j+1:], ",")
		}
		r, ok := parseRequirement(strings.TrimSpace(part))
		if !ok {
			return nil, false
		}
		all = append(all, r)
		s = strings.TrimSpace(rest)
	}
	return all, true
}

func parseRequirement(s string) (requirement, bool) {
	if set, ok := strings.CutSuffix(s, ")"); ok {
		head, inside, _ := strings.Cut(set, "(")
		f := strings.Fields(head)
		if len(f) != 2 || f[1] != "in" && f[1] != "notin" {
			return requirement{}, false
		}
		var values []string
		for v := range strings.SplitSeq(inside, ",") {
			values = append(values, strings.TrimSpace(v))
		}
		return requirement{f[0], values, f[1] == "notin"}, true
	}
	for _, op := range []string{"!=", "==", "="} {
		if key, value, ok := strings.Cut(s, op); ok {
			key = strings.TrimSpace(key)
			return requirement{key, []string{strings.TrimSpace(value)}, op == "!="}, key != "" && !strings.ContainsAny(key, " =!")
		}
	}
	key, absent := strings.CutPrefix(s, "!")
	return requirement{strings.TrimSpace(key), nil, absent}, key != "" && !strings.Contains(strings.TrimSpace(key), " ")
}

func (s selector) fits(labels any) bool {
	m, _ := labels.(object)
	for _, r := range s {
		v, there := m[r.key].(string)
		if has := there && (len(r.values) == 0 || slices.Contains(r.values, v)); has == r.absent {
			return false
		}
	}
	return true
}

// fieldsFit reports whether an object fits a field selector; known is false where the selector names a field that cannot be selected.
func fieldsFit(o object, s string) (fits, known bool) {
	fits = true
	for part := range strings.SplitSeq(s, ",") {
		if part == "" {
			continue
		}
		path, want, ok := strings.Cut(part, "!=")
		not := ok
		if !ok {
			path, want, _ = strings.Cut(part, "=")
			want = strings.TrimPrefix(want, "=")
		}
		switch path {
		case "metadata.name", "metadata.namespace", "spec.nodeName", "status.phase":
		default:
			return false, false
		}
		fits = fits && (text(o, strings.Split(path, ".")...) == want) != not
	}
	return fits, true
}
