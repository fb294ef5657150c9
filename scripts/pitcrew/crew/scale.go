//go:build unix

package crew

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/topology"
)

// Scale are the numbers of a training on this hardware.
type Scale struct {
	// Batch is the global batch here, Own that of the hardware which the training's numbers are for.
	Batch, Own int64
	// Examples is how many there are in all.
	Examples int64
}

// errCounted is the refusal of what would be trained too long or too short.
var errCounted = errors.New(
	"the number of a TensorFlow checkpoint may be a count of checkpoints, so how many examples the training has left with another global batch is not known",
)

// scaling is the number of steps for the attempt of the plan.
type scaling struct {
	attempt int
	steps   int64
	busy    bool
	retry   time.Time
}

// scaled reports whether it is known how many steps the attempt of the plan has. Training on other hardware, with another
// batch, had other steps: the batches stand beside the checkpoints, and the training gets as many steps as its examples have left.
// Where its checkpoints do not tell how many those are the attempt ends before it begins.
// Worker 0 of the first slice notes another batch before anything is trained with it.
func (c *crew) scaled(now time.Time) bool {
	s := &c.scale
	switch {
	case c.Scale == nil || s.attempt == c.plan.Attempt && s.steps > 0:
		return true
	case c.Directory == "":
		s.attempt = c.plan.Attempt
		s.steps, _ = topology.Resume(nil, 0, c.Scale.Batch, c.Scale.Examples)
		return true
	case s.busy:
		return false
	case now.Before(s.retry):
		c.at(s.retry)
		return false
	}
	s.busy = true
	plan, notes := c.plan, c.Machine.Worker == 0 && c.Machine.Slice <= 0
	c.beside(limit, func(ctx context.Context) func() {
		steps, err := c.resume(ctx, plan.Step, checkpoint.Counted(plan.Checkpoint), notes)
		return func() {
			s.busy = false
			if errors.Is(err, errCounted) {
				if c.child == nil && c.plan.Run && c.plan.Attempt == plan.Attempt {
					c.unstarted(c.clock(), fmt.Errorf("%s: %w", plan.Checkpoint, err))
				}
				return
			}
			if err != nil {
				err = fmt.Errorf("batches beside the checkpoints: %w", err)
				s.retry = c.clock().Add(time.Second)
			} else {
				s.attempt, s.steps = plan.Attempt, steps
			}
			c.fault("batches beside the checkpoints", err)
		}
	})
	return false
}

// resume reads the batches that there were, and notes the one that is to be trained with. With one batch from first to last it makes
// no difference what the number is from which the training goes on.
func (c *crew) resume(ctx context.Context, from int64, counted, notes bool) (steps int64, err error) {
	before, generation, err := c.board.Batches(ctx)
	if err != nil {
		return 0, err
	}
	known := before
	if before == nil && from > 0 { // from before anybody noted them
		before = []topology.Batch{{Size: c.Scale.Own}}
	}
	steps, all := topology.Resume(before, from, c.Scale.Batch, c.Scale.Examples)
	if counted && len(all) > 1 {
		return 0, errCounted
	}
	if notes && !slices.Equal(known, all) {
		err = c.board.SetBatches(ctx, all, generation)
	}
	return steps, err
}
