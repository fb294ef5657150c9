package trigger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/sethvargo/go-envconfig"
)

// errConfiguration marks a function whose environment is wrong.
var errConfiguration = errors.New("configuration")

// configuration reads a configuration from the environment. It returns every fault at once, because each fix costs a
// deployment; envconfig stops at the first fault.
func configuration[C any](ctx context.Context) (*C, error) {
	var (
		env     environment
		missing []string
		faults  []error
	)
	for {
		c := new(C)
		err := envconfig.ProcessWith(ctx, &envconfig.Config{Target: c, Lookuper: &env})
		switch {
		case err == nil:
			if v, ok := any(c).(interface{ Validate() error }); ok {
				faults = append(faults, v.Validate())
			}
			if len(missing) > 0 {
				faults = append(faults, fmt.Errorf("not set: %s", strings.Join(missing, ", ")))
			}
			return c, errors.Join(faults...)
		case slices.Contains(env.faulty, env.last):
			return nil, errors.Join(append(faults, err)...) // a type that accepts no empty value
		case errors.Is(err, envconfig.ErrMissingRequired):
			missing = append(missing, env.last)
		default:
			faults = append(faults, fmt.Errorf("%s: %w", env.last, err))
		}
		env.faulty = append(env.faulty, env.last)
	}
}

// environment looks variables up. A faulty one is empty from then on, so that the reading gets to the next one.
type environment struct {
	faulty []string
	last   string
}

// Lookup implements envconfig.Lookuper.
func (e *environment) Lookup(key string) (string, bool) {
	e.last = key
	if slices.Contains(e.faulty, key) {
		return "", true
	}
	return os.LookupEnv(key)
}

// logLevel names the variable that every function reads in addition to its configuration.
const logLevel = "LOG_LEVEL"

// Variable is one variable of a function's environment.
type Variable struct {
	Name string
	// Required says that the function does not start without it.
	Required bool
}

// Variables returns the variables that a registered entry point reads, sorted: a deployment must set the required ones, and
// gains nothing from setting others.
func Variables(name string) ([]Variable, error) {
	a, ok := registered.Load(name)
	if !ok {
		return nil, fmt.Errorf("entry point %q is not registered", name)
	}
	adapter, _ := a.(*Adapter) // only adapters are stored
	found := append(variables(adapter.reads), Variable{Name: logLevel})
	slices.SortFunc(found, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(found), nil
}

// variables reads the tags of a configuration, including those of its parts.
func variables(t reflect.Type) (found []Variable) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("env")
		if !ok {
			if f.Type.Kind() == reflect.Struct {
				found = append(found, variables(f.Type)...)
			}
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		required := slices.ContainsFunc(strings.Split(options, ","), func(o string) bool { return strings.TrimSpace(o) == "required" })
		found = append(found, Variable{Name: name, Required: required})
	}
	return found
}
