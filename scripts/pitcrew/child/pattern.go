package child

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Patterns are how frameworks tell their step on the output, by name. Each has the step as its last group.
var Patterns = map[string]string{
	"maxtext":  `completed step: (\d+)`,
	"pax":      `step_i: (\d+)`,
	"levanter": `Progress on: ?train (\d+(?:\.\d+)?k?)it`,
	"hf":       `^(?:\x1b\[A)*\s*\d+%\|[^|]*\|\s*(\d+)/\d+ \[`, // a bar with a title is no training's
}

// PatternOf returns the expression of a name, or the expression itself if it has a group.
func PatternOf(s string) (string, error) {
	if p, ok := Patterns[s]; ok {
		return p, nil
	}
	r, err := regexp.Compile(s)
	if err != nil {
		return "", fmt.Errorf("step pattern %q: %w", s, err)
	}
	if r.NumSubexp() < 1 {
		names := make([]string, 0, len(Patterns))
		for name := range Patterns {
			names = append(names, name)
		}
		slices.Sort(names)
		return "", fmt.Errorf("step pattern %q: it needs a group for the step, (\\d+), or is one of %s", s, strings.Join(names, ", "))
	}
	return s, nil
}

// CheckExamples refuses an expression that cannot read examples a second from the output.
func CheckExamples(s string) error {
	r, err := regexp.Compile(s)
	if err != nil {
		return fmt.Errorf("examples pattern %q: %w", s, err)
	}
	if r.NumSubexp() < 1 {
		return fmt.Errorf("examples pattern %q: it needs a group for the examples a second, such as ([0-9.]+)", s)
	}
	return nil
}

type pattern struct{ expr *regexp.Regexp }

// compile takes an expression that PatternOf let pass.
func compile(expr string) *pattern {
	r, err := regexp.Compile(expr)
	if err != nil {
		return nil
	}
	return &pattern{expr: r}
}

// step reads the step from a line; less than 0 is none.
func (p *pattern) step(line []byte) int64 { return int64(p.value(line)) }

// value reads the number from a line; less than 0 is none.
func (p *pattern) value(line []byte) float64 {
	if p == nil {
		return -1
	}
	m := p.expr.FindSubmatch(line)
	if m == nil {
		return -1
	}
	text, thousands := strings.CutSuffix(string(m[len(m)-1]), "k")
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || v > 1e15 {
		return -1
	}
	if thousands {
		v *= 1000
	}
	return v
}
