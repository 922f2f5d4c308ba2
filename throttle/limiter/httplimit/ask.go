package httplimit

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirq/weir/throttle/limiter"
)

// A question asks the limiter.
type question func(context.Context) (limiter.Result, error)

// A call is a question under way. Who settles it first decides whether its answer counts.
type call struct {
	settled atomic.Bool
	done    chan struct{} // closed when there is an answer that counts
	result  limiter.Result
	err     error
}

// ask puts a question and takes no longer than the timeout, even if the call does not end with its
// context. The request's own end does not cut the call short: clients that hang up
// at once are charged as well, and do not cost the store its connections.
func (m *Middleware) ask(ctx context.Context, q question) (limiter.Result, error) {
	deadline := time.Now().Add(m.config.Timeout)
	timer := time.NewTimer(m.config.Timeout)
	defer timer.Stop()
	if err := m.enter(timer.C); err != nil {
		return limiter.Result{}, err
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	c := &call{done: make(chan struct{})}
	go func() {
		defer cancel()
		m.run(ctx, c, q)
	}()
	select {
	case <-c.done:
	case <-timer.C:
		m.stuck.Add(1)
		if c.settled.CompareAndSwap(false, true) {
			return limiter.Result{}, fmt.Errorf("no answer within %v", m.config.Timeout)
		}
		m.stuck.Add(-1)
		<-c.done
	}
	return c.result, c.err
}

// enter takes a place among the calls under way.
func (m *Middleware) enter(late <-chan time.Time) error {
	select {
	case m.calls <- struct{}{}:
		return nil
	default:
	}
	if stuck := m.stuck.Load(); stuck > 0 {
		return fmt.Errorf("%d calls are under way, %d of them without an answer for longer than %v",
			m.config.MaxCalls, stuck, m.config.Timeout)
	}
	select {
	case m.calls <- struct{}{}:
		return nil
	case <-late:
		return fmt.Errorf("%d calls are under way, and none of them ended within %v", m.config.MaxCalls, m.config.Timeout)
	}
}

// run makes a call and gives its place back.
func (m *Middleware) run(ctx context.Context, c *call, q question) {
	c.result, c.err = guard(ctx, q)
	given := !c.settled.CompareAndSwap(false, true)
	if given {
		m.stuck.Add(-1)
	}
	<-m.calls
	if !given {
		close(c.done)
	}
}

// guard makes an error of a panic, which in a goroutine of its own would end the process.
func guard(ctx context.Context, q question) (r limiter.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return q(ctx)
}
