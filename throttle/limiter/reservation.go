package limiter

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A Reservation is a charge for a later instant.
type Reservation struct {
	// Result is the answer. If it is allowed, what was reserved may go Delay after it
	// was asked.
	Result
	limiter *Limiter
	key     string
	cost    int64

	mu   sync.Mutex
	hold *hold // nil if there is nothing to give back, or no more
}

// Reserve charges a cost to a key at the first instant at which its rules allow it, if that is no
// farther away than within; see [Forever]. In a queue that is its turn, however many wait. The caller waits for Delay and then goes, or
// cancels. Who asks later gets no earlier instant: while reservations lie ahead, calls at once may
// be denied that would pass without them.
//
// Errors are those of [Limiter.AllowN].
func (l *Limiter) Reserve(ctx context.Context, key string, cost int64, within time.Duration) (*Reservation, error) {
	if err := l.validate(key, cost); err != nil {
		return nil, err
	}
	if within < 0 {
		return nil, invalid("within", within, "0 or more")
	}
	patience := min(within.Microseconds(), forever)
	res, h, err := l.space.hold(ctx, question{key: key, cost: cost, patience: patience, reserves: true})
	if err != nil {
		return nil, fmt.Errorf("limiter %s: reserve for key %q: %w", l.name, key, err)
	}
	r := &Reservation{Result: res, limiter: l, key: key, cost: cost}
	if res.Allowed && res.Delay > 0 {
		r.hold = &h
	}
	return r, nil
}

// Cancel gives a charge back that was not used. Its instant must not have come yet; otherwise, and if
// nothing was allowed, Cancel does nothing. If others have reserved since they keep their instants, and
// as much is given back as they leave within the rules: of buckets and queues, nothing. After an error Cancel may be called
// again.
func (r *Reservation) Cancel(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hold == nil {
		return nil
	}
	if err := r.limiter.space.cancel(ctx, r.key, r.cost, *r.hold); err != nil {
		return fmt.Errorf("limiter %s: cancel for key %q: %w", r.limiter.name, r.key, err)
	}
	r.hold = nil
	return nil
}

// cancelTime bounds the cancelling of a wait whose context is over.
const cancelTime = time.Second

// Wait blocks until a cost may be charged to a key, and charges it. Those that wait are served in
// the order they came in, in all processes. A wait that would outlast the deadline of the context
// fails at once with a [*LateError]. If the context ends meanwhile the charge is cancelled; see
// [Reservation.Cancel].
func (l *Limiter) Wait(ctx context.Context, key string, cost int64) error {
	within := Forever
	if deadline, ok := ctx.Deadline(); ok {
		within = max(0, time.Until(deadline))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r, err := l.Reserve(ctx, key, cost, within)
	switch {
	case err != nil:
		return err
	case !r.Allowed:
		return &LateError{Result: r.Result}
	case r.Delay == 0:
		return nil
	}
	timer := time.NewTimer(r.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
		defer stop()
		_ = r.Cancel(last) // what cannot be given back comes back by itself
		return ctx.Err()
	}
}
