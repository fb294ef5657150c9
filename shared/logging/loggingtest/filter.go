// Package loggingtest evaluates filters of Cloud Logging on log entries, so that tests can check which entries a sink sends.
// It knows the part of the query language that Pitstop's sinks use and refuses the rest.
package loggingtest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"go.einride.tech/aip/filtering"
	expr "google.golang.org/genproto/googleapis/api/expr/v1alpha1"
)

// Filter is a filter that was parsed.
type Filter struct {
	// From is a time: the filter selects no entry with an earlier timestamp. It is zero if the filter does not say.
	From time.Time

	root test
}

// test reports whether a part of a filter selects an entry.
type test func(entry map[string]any) bool

// matches is the function that replaces a comparison by regular expression, because the parser does not know =~.
const matches = "matches"

var (
	byRegexp = regexp.MustCompile(`([\w@.]+)\s*=~\s*("[^"]*")`)
	// closing is a space before a bracket, which the parser does not accept either. Strings are skipped.
	closing = regexp.MustCompile(`"[^"]*"|\s+\)`)
)

// Parse reads a filter. Syntax that the sinks do not use is an error, and so is an invalid regular expression.
// https://cloud.google.com/logging/docs/view/logging-query-language
func Parse(filter string) (*Filter, error) {
	var p filtering.Parser
	filter = closing.ReplaceAllStringFunc(filter, func(s string) string {
		if strings.HasPrefix(s, `"`) {
			return s
		}
		return ")"
	})
	p.Init(byRegexp.ReplaceAllString(filter, matches+"($1, $2)"))
	parsed, err := p.Parse()
	if err != nil { // it shows the whole filter at every level
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
		return nil, fmt.Errorf("filter: %s", strings.TrimSpace(lines[len(lines)-1]))
	}
	root, err := compile(parsed.GetExpr())
	if err != nil {
		return nil, err
	}
	return &Filter{from(parsed.GetExpr()), root}, nil
}

// from is the earliest timestamp that a filter may select; zero if it sets no bound.
func from(e *expr.Expr) (latest time.Time) {
	c := e.GetCallExpr()
	switch args := c.GetArgs(); c.GetFunction() {
	case filtering.FunctionAnd:
		for _, a := range args {
			if t := from(a); t.After(latest) {
				latest = t
			}
		}
	case filtering.FunctionGreaterEquals:
		if wanted := values(args[1]); slices.Equal(path(args[0]), []string{"timestamp"}) && len(wanted) == 1 {
			latest, _ = time.Parse(time.RFC3339Nano, wanted[0]) //nolint:errcheck // it compares with something else then
		}
	}
	return latest
}

// compile refuses a filter that cannot be evaluated.
func compile(e *expr.Expr) (test, error) {
	c := e.GetCallExpr()
	if c == nil {
		return nil, fmt.Errorf("filter: a term alone, %v, is searched for in all fields; name one", e)
	}
	switch op, args := c.GetFunction(), c.GetArgs(); op {
	case filtering.FunctionAnd, filtering.FunctionOr, filtering.FunctionNot:
		return combine(op, args)
	case filtering.FunctionEquals, filtering.FunctionHas, filtering.FunctionGreaterEquals, matches:
		path, wanted := path(args[0]), values(args[1])
		if len(path) == 0 || len(wanted) == 0 {
			return nil, fmt.Errorf("filter: %s compares no field with a value", op)
		}
		var fits []func(got any) bool
		for _, want := range wanted {
			fit, err := comparison(op, want)
			if err != nil {
				return nil, err
			}
			fits = append(fits, fit)
		}
		return func(entry map[string]any) bool {
			return slices.ContainsFunc(fits, func(fit func(any) bool) bool { return anyValue(entry, path, fit) })
		}, nil
	case "log_id":
		want := values(args[0])[0]
		return func(entry map[string]any) bool {
			name, _ := entry["logName"].(string)
			_, id, _ := strings.Cut(name, "/logs/")
			return strings.ReplaceAll(id, "%2F", "/") == want
		}, nil
	default:
		return nil, fmt.Errorf("filter: %s is not supported", op)
	}
}

func combine(op string, args []*expr.Expr) (test, error) {
	var parts []test
	for _, a := range args {
		part, err := compile(a)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return func(entry map[string]any) bool {
		switch op {
		case filtering.FunctionAnd:
			return !slices.ContainsFunc(parts, func(t test) bool { return !t(entry) })
		case filtering.FunctionOr:
			return slices.ContainsFunc(parts, func(t test) bool { return t(entry) })
		}
		return !parts[0](entry)
	}, nil
}

// Matches reports whether the filter selects a log entry, given in the JSON of the Logging API.
func (f *Filter) Matches(entry []byte) (bool, error) {
	var e map[string]any
	if err := json.Unmarshal(entry, &e); err != nil {
		return false, err
	}
	return f.MatchesFields(e), nil
}

// MatchesFields is Matches for an entry that was decoded.
func (f *Filter) MatchesFields(entry map[string]any) bool { return f.root(entry) }

// comparison compares one value. Strings are equal, and contained in each other, whatever their case.
func comparison(op, want string) (func(got any) bool, error) {
	switch op {
	case filtering.FunctionEquals:
		return func(got any) bool { return strings.EqualFold(written(got), want) }, nil
	case filtering.FunctionHas:
		lower := strings.ToLower(want)
		return func(got any) bool { return want == "*" || strings.Contains(strings.ToLower(written(got)), lower) }, nil
	case matches:
		r, err := regexp.Compile(want)
		if err != nil {
			return nil, err
		}
		return func(got any) bool { return r.MatchString(written(got)) }, nil
	}
	if from, err := time.Parse(time.RFC3339Nano, want); err == nil {
		return func(got any) bool {
			at, err := time.Parse(time.RFC3339Nano, written(got))
			return err == nil && !at.Before(from)
		}, nil
	}
	if least, err := strconv.ParseFloat(want, 64); err == nil {
		return func(got any) bool {
			n, ok := got.(float64)
			return ok && n >= least
		}, nil
	}
	least := slices.Index(severities, want)
	return func(got any) bool { return slices.Index(severities, written(got)) >= least }, nil
}

var severities = []string{"", "DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY"}

func written(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// anyValue reports whether a value under a path fits; a list on the way stands for each of its elements.
func anyValue(v any, path []string, fit func(any) bool) bool {
	if list, ok := v.([]any); ok {
		return slices.ContainsFunc(list, func(x any) bool { return anyValue(x, path, fit) })
	}
	if len(path) == 0 {
		return fit(v)
	}
	m, _ := v.(map[string]any)
	x, ok := m[path[0]]
	return ok && anyValue(x, path[1:], fit)
}

// path is the field that an expression names.
func path(e *expr.Expr) []string {
	switch k := e.GetExprKind().(type) {
	case *expr.Expr_IdentExpr:
		return []string{k.IdentExpr.GetName()}
	case *expr.Expr_SelectExpr:
		return append(path(k.SelectExpr.GetOperand()), k.SelectExpr.GetField())
	}
	return nil
}

// values are the alternatives that a field is compared with.
func values(e *expr.Expr) []string {
	switch k := e.GetExprKind().(type) {
	case *expr.Expr_IdentExpr:
		return []string{k.IdentExpr.GetName()}
	case *expr.Expr_ConstExpr:
		if n, ok := k.ConstExpr.GetConstantKind().(*expr.Constant_Int64Value); ok {
			return []string{strconv.FormatInt(n.Int64Value, 10)}
		}
		return []string{k.ConstExpr.GetStringValue()}
	case *expr.Expr_CallExpr:
		if k.CallExpr.GetFunction() == filtering.FunctionOr {
			var out []string
			for _, a := range k.CallExpr.GetArgs() {
				out = append(out, values(a)...)
			}
			return out
		}
	}
	return nil
}
