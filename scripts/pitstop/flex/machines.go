// Package flex knows what a person has to work out to train on TPUs with flex-start on GKE: which machines make a slice, the node
// pool that holds them, the objects that train there, and what is wrong with a pool that is there already.
//
// Flex-start on GKE: https://cloud.google.com/kubernetes-engine/docs/how-to/dws-flex-start-training-tpu
package flex

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Machine is a machine type with TPU chips, as GKE has it.
type Machine struct {
	Type string
	// Generation is Google's name of the TPU, and Accelerator the value of the label by which GKE knows it.
	Generation, Accelerator string
	// Chips is how many chips one machine has.
	Chips int
	// alone is the topology of a slice of one machine; many are the sides that slices of several machines may have.
	alone string
	many  sides
	// chipsAtMost bounds a slice.
	chipsAtMost int
	// workloadPolicy says that a workload policy places a slice of several machines, in the place of --tpu-topology.
	workloadPolicy bool
	// since is the oldest version of GKE that has flex-start for it.
	since string
	// never says why it is not planned.
	never string
}

// sides says which sides a topology of several machines may have.
type sides int

const (
	none  sides = iota // the machine type makes slices of one machine only
	plane              // AxB, one of the list
	cube               // AxBxC, by rule
)

// planes are the topologies of v5e and v6e for several machines.
var planes = []string{"2x4", "4x4", "4x8", "8x8", "8x16", "16x16"}

// smallCubes are the topologies of three sides below 4x4x4. Above it every side is a multiple of 4, and sides do not go down.
var smallCubes = []string{"2x2x2", "2x2x4", "2x4x4"}

const (
	sinceFlex  = "1.33.0-gke.1712000" // flex-start with TPUs
	sinceTPU7x = "1.34.0-gke.2201000" // TPU7x in Standard clusters

	notChecked = "it is not planned here, because its topologies were not checked; name --machine ct5p-hightpu-4t"

	noFlex = "GKE has no flex-start for it; flex-start begins with v5e"
)

// Machines are the machine types, by generation.
//
// Sources: https://cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus for chips, topologies and labels,
// https://cloud.google.com/kubernetes-engine/docs/concepts/tpu-ironwood for TPU7x, and
// https://cloud.google.com/tpu/docs/v5p for the bound of a v5p slice (16x16x24).
func Machines() []Machine {
	return []Machine{
		{Type: "ct3-hightpu-4t", Generation: "v3", Chips: 4, never: noFlex},
		{Type: "ct3p-hightpu-4t", Generation: "v3", Chips: 4, never: noFlex},
		{Type: "ct4p-hightpu-4t", Generation: "v4", Chips: 4, never: noFlex},
		{Type: "ct5lp-hightpu-1t", Generation: "v5e", Accelerator: "tpu-v5-lite-podslice", Chips: 1, alone: "1x1", chipsAtMost: 1, since: sinceFlex},
		{Type: "ct5lp-hightpu-4t", Generation: "v5e", Accelerator: "tpu-v5-lite-podslice", Chips: 4, alone: "2x2", many: plane, chipsAtMost: 256, since: sinceFlex},
		{Type: "ct5lp-hightpu-8t", Generation: "v5e", Accelerator: "tpu-v5-lite-podslice", Chips: 8, alone: "2x4", chipsAtMost: 8, since: sinceFlex},
		{Type: "ct5p-hightpu-1t", Generation: "v5p", Chips: 1, never: notChecked},
		{Type: "ct5p-hightpu-2t", Generation: "v5p", Chips: 2, never: notChecked},
		{Type: "ct5p-hightpu-4t", Generation: "v5p", Accelerator: "tpu-v5p-slice", Chips: 4, alone: "2x2x1", many: cube, chipsAtMost: 6144, since: sinceFlex},
		{Type: "ct6e-standard-1t", Generation: "v6e", Accelerator: "tpu-v6e-slice", Chips: 1, alone: "1x1", chipsAtMost: 1, since: sinceFlex},
		{Type: "ct6e-standard-4t", Generation: "v6e", Accelerator: "tpu-v6e-slice", Chips: 4, alone: "2x2", many: plane, chipsAtMost: 256, since: sinceFlex},
		{Type: "ct6e-standard-8t", Generation: "v6e", Accelerator: "tpu-v6e-slice", Chips: 8, alone: "2x4", chipsAtMost: 8, since: sinceFlex},
		{Type: "tpu7x-standard-1t", Generation: "TPU7x", Accelerator: "tpu7x", Chips: 1, alone: "1x1x1", chipsAtMost: 1, workloadPolicy: true, since: sinceTPU7x},
		{Type: "tpu7x-standard-4t", Generation: "TPU7x", Accelerator: "tpu7x", Chips: 4, alone: "2x2x1", many: cube, chipsAtMost: 9216, workloadPolicy: true, since: sinceTPU7x},
	}
}

// MachineOf finds a machine type. Its error names the types that there are.
func MachineOf(name string) (Machine, error) {
	var known []string
	for _, m := range Machines() {
		if m.Type == name {
			return m, nil
		}
		if m.never == "" {
			known = append(known, m.Type)
		}
	}
	return Machine{}, fmt.Errorf("machine type %.60q has no TPU that is known here; flex-start takes %s", name, strings.Join(known, ", "))
}

// Slice is one slice: machines with a topology.
type Slice struct {
	Machine  Machine
	Topology string
	// Chips and Nodes are those of the whole slice. A node is a machine.
	Chips, Nodes int
}

// Several reports whether the slice has more machines than one.
func (s Slice) Several() bool { return s.Nodes > 1 }

// SliceOf holds a topology against a machine type. An empty topology is that of one machine. Its errors say what to name instead.
func SliceOf(machine, topology string) (Slice, error) {
	m, err := MachineOf(machine)
	if err != nil {
		return Slice{}, err
	}
	if m.never != "" {
		return Slice{}, fmt.Errorf("machine type %s (%s): %s", m.Type, m.Generation, m.never)
	}
	if topology == "" {
		topology = m.alone
	}
	lengths, err := lengthsOf(topology)
	if err != nil {
		return Slice{}, err
	}
	if want := strings.Count(m.alone, "x") + 1; len(lengths) != want {
		return Slice{}, fmt.Errorf("topology %s has %d sides, and %s (%s) has %d, as in %s", topology, len(lengths), m.Type, m.Generation, want, m.alone)
	}
	chips := 1
	for _, n := range lengths {
		chips *= n
	}
	if topology == m.alone {
		return Slice{m, topology, chips, 1}, nil
	}
	if err := m.fits(topology, lengths, chips); err != nil {
		return Slice{}, err
	}
	return Slice{m, topology, chips, chips / m.Chips}, nil
}

// fits says why no slice of several machines has the topology.
func (m Machine) fits(topology string, lengths []int, chips int) error {
	switch {
	case m.many == none:
		way := "it makes slices of one machine only"
		for _, other := range Machines() {
			if other.Generation != m.Generation || other.Type == m.Type {
				continue
			}
			if other.alone == topology || other.many != none && other.fits(topology, lengths, chips) == nil {
				way += fmt.Sprintf("; name --machine %s for %s", other.Type, topology)
			}
		}
		return fmt.Errorf("%s has %s and not %s: %s", m.Type, m.alone, topology, way)
	case m.many == plane && !slices.Contains(planes, topology):
		way := strings.Join(append([]string{m.alone}, planes...), ", ")
		if topology == "1x1" {
			way += "; one chip is --machine " + strings.TrimSuffix(m.Type, "4t") + "1t"
		}
		return fmt.Errorf("topology %s is none of %s (%s), which has %s", topology, m.Type, m.Generation, way)
	case m.many == cube && !slices.IsSorted(lengths):
		up := slices.Sorted(slices.Values(lengths))
		return fmt.Errorf("topology %s: its sides go up, as in %s", topology, joined(up))
	case m.many == cube && !slices.Contains(smallCubes, topology) && slices.ContainsFunc(lengths, func(n int) bool { return n%4 != 0 }):
		return fmt.Errorf("topology %s: %s (%s) has %s, %s, and from 4x4x4 on sides that are multiples of 4",
			topology, m.Type, m.Generation, m.alone, strings.Join(smallCubes, ", "))
	case chips > m.chipsAtMost:
		return fmt.Errorf("topology %s has %d chips, and a slice of %s (%s) at most %d: name a smaller one, or several slices with --slices",
			topology, chips, m.Type, m.Generation, m.chipsAtMost)
	}
	return nil
}

// mostOnASide keeps the product of three sides within an int of 32 bits.
const mostOnASide = 1000

// lengthsOf reads AxB or AxBxC.
func lengthsOf(topology string) ([]int, error) {
	parts := strings.Split(topology, "x")
	var lengths []int
	for _, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 1 || n > mostOnASide || strconv.Itoa(n) != p || len(parts) > 3 || len(parts) < 2 {
			return nil, fmt.Errorf("topology %.40q cannot be read: it is AxB for v5e and v6e, as in 4x4, and AxBxC for v5p and TPU7x, as in 2x2x4", topology)
		}
		lengths = append(lengths, n)
	}
	return lengths, nil
}

func joined(lengths []int) string {
	var parts []string
	for _, n := range lengths {
		parts = append(parts, strconv.Itoa(n))
	}
	return strings.Join(parts, "x")
}

// Table lists the machine types with flex-start, for a page.
func Table() string {
	var b strings.Builder
	b.WriteString("| TPU | machine type | chips | topology of one machine | of several | at most | label |\n|---|---|---|---|---|---|---|\n")
	for _, m := range Machines() {
		if m.never != "" {
			continue
		}
		several, most := "none", "1 machine"
		switch m.many {
		case none:
		case plane:
			several = strings.Join(planes, ", ")
		case cube:
			several = strings.Join(smallCubes, ", ") + "; from 4x4x4 on, sides that are multiples of 4, the smallest first"
		}
		if m.many != none {
			most = count(m.chipsAtMost, "chip")
		}
		fmt.Fprintf(&b, "| %s | `%s` | %d | %s | %s | %s | `%s` |\n", m.Generation, m.Type, m.Chips, m.alone, several, most, m.Accelerator)
	}
	return b.String()
}
