package gke

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Whoever may make objects in a namespace decides how many there are, and how large. What bounds a reading must cost that namespace alone:
// a reading that goes beyond a bound begins again without the namespace that has most of it.

const (
	// mostText bounds what the lists of a reading bring, and thereby how long it takes.
	mostText = 512 << 20
	// mostKept bounds the memory of what is kept of it. A function has 512 MiB.
	mostKept = 96 << 20
	// mostLeftOut bounds how often a reading begins again.
	mostLeftOut = 16
)

var errLarge = fmt.Errorf("the answer has more than %d MiB", mostBytes>>20)

// listed is an object of a list.
type listed interface{ meta() Meta }

func (m Meta) meta() Meta { return m }

// Unread is a namespace that could not be read, and why.
type Unread struct {
	Namespace string
	Err       error
}

// reasons are why these could not be read; nil for none.
func reasons(of []Unread) error {
	var all []error
	for _, u := range of {
		all = append(all, u.Err)
	}
	return errors.Join(all...)
}

// scopesOf are these namespaces of a cluster.
func scopesOf(of []Unread, cluster string) (all []string) {
	for _, u := range of {
		all = append(all, cluster+"/"+u.Namespace)
	}
	return all
}

// unreadable says that the objects of one namespace cannot be read. An empty one is that of objects that belong to none.
type unreadable struct{ namespace, why string }

// Error implements error.
func (u *unreadable) Error() string {
	if u.namespace == "" {
		return u.why
	}
	return "namespace " + u.namespace + ": " + u.why
}

// leavingOut has a cluster read. Where the objects of a namespace cannot be read, it has it read again without that namespace.
func (c Client) leavingOut(read func(c Client) error) (out []Unread, err error) {
	before := tally{}
	if c.tally != nil {
		before = *c.tally
	}
	for {
		now := before
		c.tally = &now
		err = read(c)
		var no *unreadable
		if !errors.As(err, &no) || no.namespace == c.Namespace || slices.Contains(c.without, no.namespace) || len(out) == mostLeftOut {
			return out, err
		}
		c.orders.forget(no.namespace)
		out, c.without = append(out, Unread{no.namespace, err}), append(slices.Clip(c.without), no.namespace)
	}
}

// amount is how much there is of something, by namespace.
type amount struct {
	all int
	of  map[string]int
}

func (a *amount) add(namespace string, n int) {
	if a.of == nil {
		a.of = map[string]int{}
	}
	a.all, a.of[namespace] = a.all+n, a.of[namespace]+n
}

// plus is the sum of two amounts, which stay as they are.
func (a amount) plus(b amount) amount {
	sum := amount{a.all, maps.Clone(a.of)}
	for namespace, n := range b.of {
		sum.all -= n
		sum.add(namespace, n)
	}
	sum.all += b.all
	return sum
}

// most is the namespace that has most.
func (a amount) most() string {
	names := slices.Collect(maps.Keys(a.of))
	if len(names) == 0 {
		return ""
	}
	return slices.MaxFunc(names, func(x, y string) int { return cmp.Or(cmp.Compare(a.of[x], a.of[y]), strings.Compare(y, x)) })
}

// tally is what the lists of a reading have taken so far: the text that came, and the memory of what is kept.
type tally struct{ text, kept amount }

func (t tally) plus(u tally) tally { return tally{t.text.plus(u.text), t.kept.plus(u.kept)} }

// add counts an object. Before is what was taken before the tally began. The error says that both go beyond a bound.
func (t *tally) add(before tally, namespace string, text, kept int) error {
	t.text.add(namespace, text)
	t.kept.add(namespace, kept)
	const way = "%s more than %d MiB, most of it of this namespace; delete there what is so large or so much"
	switch {
	case before.kept.all+t.kept.all > mostKept:
		return &unreadable{before.kept.plus(t.kept).most(), fmt.Sprintf(way, "what is kept of the cluster takes", mostKept>>20)}
	case before.text.all+t.text.all > mostText:
		return &unreadable{before.text.plus(t.text).most(), fmt.Sprintf(way, "the lists of the cluster have", mostText>>20)}
	}
	return nil
}

// undecoded says of which namespace an object is that cannot be read.
func undecoded(text jsontext.Value, no error) error {
	var o struct {
		Meta struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return no //nolint:wrapcheck // nobody knows of which it is
	}
	return &unreadable{o.Meta.Namespace, fmt.Sprintf("the object %.80q: %v", o.Meta.Name, no)}
}

// weight is about how much memory an object takes.
func weight(of any) int {
	v := reflect.ValueOf(of)
	return int(v.Type().Size()) + beyond(v)
}

// beyond is the memory to which a value points.
func beyond(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return int(v.Elem().Type().Size()) + beyond(v.Elem())
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			n += int(v.Type().Key().Size()+v.Type().Elem().Size()) + beyond(each.Key()) + beyond(each.Value())
		}
	case reflect.Slice:
		n = v.Len() * int(v.Type().Elem().Size())
		for i := range v.Len() {
			if v.Type().Elem().Kind() == reflect.Uint8 {
				break
			}
			n += beyond(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() { // it points to a zone that others share
			return 0
		}
		for i := range v.NumField() {
			n += beyond(v.Field(i))
		}
	default:
	}
	return n
}
