package topology

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Devices is the number of devices that JAX sees on the slice. A device is a TensorCore on v2 and v3, and a chip from v4 on,
// where the two cores of a chip act as one. https://cloud.google.com/tpu/docs/system-architecture-tpu-vm
func (s Shape) Devices() int {
	if s.Generation == "v2" || s.Generation == "v3" {
		return s.Cores
	}
	return s.Chips
}

// ParseSlices reads an accelerator type, or several slices of it: v4-8, 2xv4-8.
func ParseSlices(s string) (of Shape, n int, err error) {
	n = 1
	if count, rest, ok := strings.Cut(s, "x"); ok {
		if k, err := strconv.Atoi(count); err == nil && k > 0 && k < 1<<16 {
			n, s = k, rest
		}
	}
	of, err = Parse(s)
	return of, n, err
}

// Scaled holds a training's numbers on other hardware.
type Scaled struct {
	GlobalBatch, Steps int64
	// Exact says that the total number of examples is the same; otherwise the last step adds a few.
	Exact bool
}

// Rescale keeps the batch per device and the total number of examples when a training moves to another number of devices. It
// fails if the batch is not a whole number.
func Rescale(from, to int, globalBatch, steps int64) (Scaled, error) {
	const most = 1 << 40
	switch {
	case from < 1 || to < 1:
		return Scaled{}, errors.New("a training needs a device")
	case globalBatch < 1 || steps < 1 || globalBatch > most || steps > most/globalBatch*1024:
		return Scaled{}, fmt.Errorf("a global batch of %d and %d steps cannot be scaled", globalBatch, steps)
	case globalBatch%int64(from) != 0:
		return Scaled{}, fmt.Errorf("a global batch of %d cannot be divided evenly among %d devices", globalBatch, from)
	}
	batch := globalBatch / int64(from) * int64(to)
	examples := globalBatch * steps
	return Scaled{GlobalBatch: batch, Steps: (examples + batch - 1) / batch, Exact: examples%batch == 0}, nil
}

// Batch is a global batch, and the first step trained with it.
type Batch struct {
	From int64 `json:"from"`
	Size int64 `json:"global_batch"`
}

// Resume says how many steps a training has in total if it continues from a step with this batch, and lists its batches so
// far. The total of examples is given, and earlier batches may differ. Steps after that step are trained again, so they do
// not count.
func Resume(before []Batch, from, batch, examples int64) (steps int64, now []Batch) {
	for i, b := range before {
		if b.From >= from {
			break
		}
		end := from
		if i+1 < len(before) {
			end = min(from, before[i+1].From)
		}
		if done := end - b.From; done > examples/b.Size {
			examples = 0
		} else {
			examples -= done * b.Size
		}
		now = append(now, b)
	}
	if len(now) == 0 {
		from = 0
	}
	if len(now) == 0 || now[len(now)-1].Size != batch {
		now = append(now, Batch{from, batch})
	}
	return from + (examples+batch-1)/batch, now
}
