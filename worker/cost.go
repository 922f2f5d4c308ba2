package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/weirq/weir/throttle"
)

// trueCost is what a run turned out to cost, as its handler says.
type trueCost struct {
	set   atomic.Bool
	value atomic.Int64
}

func (c *trueCost) get() (cost int64, set bool) {
	if !c.set.Load() {
		return 0, false
	}
	return c.value.Load(), true
}

type costKey struct{}

func (h *held) withCost(ctx context.Context) context.Context {
	return context.WithValue(ctx, costKey{}, &h.cost)
}

// ErrNoJob is returned for a context that is not a handler's.
var ErrNoJob = errors.New("the context belongs to no job: pass on the one that the handler got")

// SetCost tells what the attempt truly cost, 0 to [throttle.MaxCost], where that
// differs from the job's cost: when the attempt ends, the bucket of its key, its
// quotas and its parents are corrected by the difference. The last call counts.
//
// An estimate that is too low is made good in full. One that is too high is made good as
// far as its charge cannot have leaked since the slot, and is not promised to jobs that
// have their slots: in full if the attempt ends within the time in which its true cost
// leaks, and not at all once the estimate has. More would be a burst on top of the burst.
// A job that is dropped, see [Outcome],
// costs nothing unless this says otherwise.
//
// ctx is the handler's context or one made from it.
func SetCost(ctx context.Context, cost int64) error {
	c, ok := ctx.Value(costKey{}).(*trueCost)
	if !ok {
		return ErrNoJob
	}
	if cost < 0 || cost > throttle.MaxCost {
		return fmt.Errorf("cost %d is not allowed: want 0 to %d", cost, int64(throttle.MaxCost))
	}
	c.value.Store(cost)
	c.set.Store(true)
	return nil
}
