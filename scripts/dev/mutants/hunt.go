package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"pitstop.internal/scripts/dev/deployment/terraform"
	"pitstop.internal/scripts/sim"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/oracle"
	"pitstop.internal/scripts/sim/world"
)

// caught is how a mutant was noticed; by is empty where it was not.
type caught struct{ by, text string }

// hunt is what mutants are run on.
type hunt struct {
	settings map[degree]sim.Setting
	// terraform is the folder of the deployment.
	terraform string
}

func newHunt(root string) (hunt, error) {
	h := hunt{terraform: filepath.Join(root, "terraform")}
	var err error
	h.settings, err = settings(filepath.Join(root, "scripts", "sim", "testdata", "rare"))
	return h, err
}

// settings are the settings of the seeds. Heavy faults run over the mixed fleet for a day. Hostile faults run for two days,
// over a fleet whose incidents often take paths that are rare elsewhere.
func settings(rare string) (map[degree]sim.Setting, error) {
	all := map[degree]sim.Setting{heavy: {Days: 1, Slices: 4}, hostile: {Days: 2, Slices: 4}}
	for name, s := range all {
		var err error
		if s.Faults, err = faults.Named(string(name)); err != nil {
			return nil, err
		}
		all[name] = s
	}
	all[jobs] = sim.Setting{Days: 1, Slices: 1, Jobs: true, Faults: all[heavy].Faults}
	files := map[string][]byte{}
	for _, name := range []string{"fleet.yaml", "policy.yaml", "rates.yaml"} {
		data, err := os.ReadFile(filepath.Join(rare, name))
		if err != nil {
			return nil, err
		}
		files[name] = data
	}
	fleet, err := world.Parse(files["fleet.yaml"])
	if err != nil {
		return nil, err
	}
	rates, err := faults.ParseRates(files["rates.yaml"])
	if err != nil {
		return nil, err
	}
	s := all[hostile]
	s.Fleet, s.Policy, s.Rates = &fleet, files["policy.yaml"], rates
	all[hostile] = s
	return all, nil
}

// hunt looks who notices a mutant: the lowest seed that does, or the checks of the deployment.
func (h hunt) hunt(ctx context.Context, m mutant, seeds uint64) (caught, error) {
	if m.grant != nil {
		return h.grants(m)
	}
	seed, v, err := h.seeds(ctx, m, seeds)
	if err != nil || v == nil {
		return caught{}, err
	}
	return caught{fmt.Sprintf("seed %d", seed), v.Rule + ": " + v.Text}, nil
}

// seeds runs a mutant on as many seeds at a time as there are processors, and returns the lowest that breaks a rule.
func (h hunt) seeds(ctx context.Context, m mutant, most uint64) (lowest uint64, broken *oracle.Violation, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := uint64(1)
	take := func() (uint64, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next > most || broken != nil || err != nil { // all lower ones are under way
			return 0, false
		}
		next++
		return next - 1, true
	}
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				seed, ok := take()
				if !ok {
					return
				}
				v, failed := h.seed(ctx, m, seed)
				mu.Lock()
				err = errors.Join(err, failed)
				if v != nil && (broken == nil || seed < lowest) {
					lowest, broken = seed, v
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return lowest, broken, err
}

// seed runs a mutant on one seed, and returns the first rule that it breaks there. A seed that breaks one without the mutant shows
// nothing.
func (h hunt) seed(ctx context.Context, m mutant, seed uint64) (*oracle.Violation, error) {
	one, err := h.settings[m.faults].Simulation(seed)
	if err != nil {
		return nil, err
	}
	one.Hooks, one.UntilBroken = m.hooks(func() {}), true
	r, err := sim.Simulate(ctx, one)
	if err != nil || len(r.Violations) == 0 {
		return nil, err
	}
	one.Hooks = world.Hooks{}
	whole, err := sim.Simulate(ctx, one)
	if err != nil || len(whole.Violations) > 0 {
		return nil, err
	}
	return &r.Violations[0], nil
}

// grants checks a mutant of the deployment against the granted permissions.
func (h hunt) grants(m mutant) (caught, error) {
	d, err := terraform.Parse(h.terraform)
	if err != nil {
		return caught{}, err
	}
	if faults := d.Faults(); len(faults) > 0 {
		return caught{}, fmt.Errorf("the deployment is at fault without the mutant: %s", faults[0])
	}
	if err := m.grant(d); err != nil {
		return caught{}, err
	}
	if faults := d.Faults(); len(faults) > 0 {
		return caught{"check", faults[0]}, nil
	}
	return caught{}, nil
}
