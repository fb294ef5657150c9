// Package topology knows the properties of an accelerator type: its generation, its chips, its workers. The suffix of a type
// counts TensorCores up to v4 and on v5p, and chips on v5e and v6e.
// https://cloud.google.com/tpu/docs/system-architecture-tpu-vm
package topology

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Shape is what an accelerator type provides.
type Shape struct {
	// Generation is the prefix of the type: v2, v3, v4, v5litepod, v5p, v6e.
	Generation string
	// Chips and Cores of the whole slice.
	Chips, Cores int
	// Workers is the number of VMs.
	Workers int
}

type generation struct {
	coresPerChip int
	// suffixIsCores says that the suffix counts TensorCores, else chips.
	suffixIsCores bool
	// singleHost is the largest number of chips that one VM holds.
	singleHost int
	// early is the smallest number of chips for which announced maintenance may be started by hand; 0 is none.
	early int
}

// chipsPerWorker holds for every slice of more than one VM.
const chipsPerWorker = 4

var generations = map[string]generation{
	"v2":        {2, true, 4, 0},
	"v3":        {2, true, 4, 0},
	"v4":        {2, true, 4, 1},
	"v5p":       {2, true, 4, 1},
	"v5litepod": {1, false, 8, 8},
	"v6e":       {1, false, 8, 8},
}

// Generations are the known generations, in alphabetical order.
func Generations() []string { return slices.Sorted(maps.Keys(generations)) }

// Parse reads an accelerator type such as v5litepod-16.
func Parse(acceleratorType string) (Shape, error) {
	prefix, suffix, ok := strings.Cut(acceleratorType, "-")
	g, known := generations[prefix]
	n, err := strconv.Atoi(suffix)
	if !ok || !known || err != nil || n < 1 {
		return Shape{}, fmt.Errorf("accelerator type %.40q is unknown", acceleratorType)
	}
	s := Shape{Generation: prefix, Chips: n, Cores: n * g.coresPerChip}
	if g.suffixIsCores {
		if n%g.coresPerChip != 0 {
			return Shape{}, fmt.Errorf("accelerator type %q has %d TensorCores, which is not a whole number of chips", acceleratorType, n)
		}
		s.Chips, s.Cores = n/g.coresPerChip, n
	}
	s.Workers = 1
	if s.Chips > g.singleHost {
		if s.Chips%chipsPerWorker != 0 {
			return Shape{}, fmt.Errorf("accelerator type %q has %d chips, which do not fill a whole number of workers", acceleratorType, s.Chips)
		}
		s.Workers = s.Chips / chipsPerWorker
	}
	return s, nil
}

// MaintainsEarly reports whether announced maintenance of a slice may be started by hand: v4 and v5p of any size, v5e and
// v6e from 2x4 on. https://cloud.google.com/tpu/docs/manually-start-maintenance
func (s Shape) MaintainsEarly() bool {
	early := generations[s.Generation].early
	return early > 0 && s.Chips >= early
}

// Region is the region of a zone: the part before the last hyphen. That also holds for zones such as us-central1-ai1a. The scope of a
// Job of GKE begins with the location of its cluster, which is a zone or a region: only a zone has a second hyphen.
func Region(zone string) string {
	if location, _, job := strings.Cut(zone, "/"); job {
		if strings.Count(location, "-") < 2 {
			return location
		}
		zone = location
	}
	if i := strings.LastIndexByte(zone, '-'); i > 0 {
		return zone[:i]
	}
	return zone
}
