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
	root    *expr.Expr
	regexps map[string]*regexp.Regexp
}

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
	f := &Filter{root: parsed.GetExpr(), regexps: map[string]*regexp.Regexp{}}
	return f, f.check(f.root)
}

// check refuses a filter that cannot be evaluated.
func (f *Filter) check(e *expr.Expr) error {
	c := e.GetCallExpr()
	if c == nil {
		return fmt.Errorf("filter: a term alone, %v, is searched for in all fields; name one", e)
	}
	switch op := c.GetFunction(); op {
	case filtering.FunctionAnd, filtering.FunctionOr, filtering.FunctionNot:
		for _, a := range c.GetArgs() {
			if err := f.check(a); err != nil {
				return err
			}
		}
		return nil
	case filtering.FunctionEquals, filtering.FunctionHas, filtering.FunctionGreaterEquals:
		if len(path(c.GetArgs()[0])) == 0 || len(values(c.GetArgs()[1])) == 0 {
			return fmt.Errorf("filter: %s compares no field with a value", op)
		}
		return nil
	case "log_id":
		return nil
	case matches:
		re := values(c.GetArgs()[1])[0]
		r, err := regexp.Compile(re)
		f.regexps[re] = r
		return err
	default:
		return fmt.Errorf("filter: %s is not supported", op)
	}
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
func (f *Filter) MatchesFields(entry map[string]any) bool { return f.eval(f.root, entry) }

func (f *Filter) eval(e *expr.Expr, entry map[string]any) bool {
	c := e.GetCallExpr()
	args := c.GetArgs()
	switch c.GetFunction() {
	case filtering.FunctionAnd:
		return !slices.ContainsFunc(args, func(a *expr.Expr) bool { return !f.eval(a, entry) })
	case filtering.FunctionOr:
		return slices.ContainsFunc(args, func(a *expr.Expr) bool { return f.eval(a, entry) })
	case filtering.FunctionNot:
		return !f.eval(args[0], entry)
	case "log_id":
		name, _ := entry["logName"].(string)
		_, id, _ := strings.Cut(name, "/logs/")
		return strings.ReplaceAll(id, "%2F", "/") == values(args[0])[0]
	}
	fields := fields(entry, path(args[0]))
	return slices.ContainsFunc(values(args[1]), func(want string) bool {
		return slices.ContainsFunc(fields, func(got any) bool { return f.compare(c.GetFunction(), got, want) })
	})
}

// compare compares one value. Strings are equal, and contained in each other, whatever their case.
func (f *Filter) compare(op string, got any, want string) bool {
	s := written(got)
	switch op {
	case filtering.FunctionEquals:
		return strings.EqualFold(s, want)
	case filtering.FunctionHas:
		return want == "*" || strings.Contains(strings.ToLower(s), strings.ToLower(want))
	case filtering.FunctionGreaterEquals:
		if from, err := time.Parse(time.RFC3339Nano, want); err == nil {
			at, err := time.Parse(time.RFC3339Nano, s)
			return err == nil && !at.Before(from)
		}
		if least, err := strconv.ParseFloat(want, 64); err == nil {
			n, ok := got.(float64)
			return ok && n >= least
		}
		return slices.Index(severities, s) >= slices.Index(severities, want)
	case matches:
		return f.regexps[want].MatchString(s)
	}
	return false
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

// fields returns the values under a path; a list on the way stands for each of its elements.
func fields(v any, path []string) []any {
	if list, ok := v.([]any); ok {
		var out []any
		for _, x := range list {
			out = append(out, fields(x, path)...)
		}
		return out
	}
	if len(path) == 0 {
		return []any{v}
	}
	m, _ := v.(map[string]any)
	x, ok := m[path[0]]
	if !ok {
		return nil
	}
	return fields(x, path[1:])
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
