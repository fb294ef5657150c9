package trigger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/sethvargo/go-envconfig"
)

// errConfiguration marks a function whose environment is wrong.
var errConfiguration = errors.New("configuration")

// configuration reads a configuration from the environment. It returns every fault at once, because each one costs whoever
// has to cure it a deployment; envconfig ends at the first.
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
			return nil, errors.Join(append(faults, err)...) // a type that takes no empty value
		case errors.Is(err, envconfig.ErrMissingRequired):
			missing = append(missing, env.last)
		default:
			faults = append(faults, fmt.Errorf("%s: %w", env.last, err))
		}
		env.faulty = append(env.faulty, env.last)
	}
}

// environment looks variables up. Those that were found faulty are empty from then on, so that reading comes to the
// next one.
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
