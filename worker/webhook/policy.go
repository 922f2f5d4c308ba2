package webhook

import (
	"context"
	"time"

	"github.com/weirq/weir/throttle"
)

// SetPolicy sets the live policy of an endpoint's key, see [throttle.Queue.SetPolicy]; its
// Key is ignored. nil removes it. The queue keeps it, and lists it among its
// policies; Delete removes it with the endpoint.
func (s *Endpoints) SetPolicy(ctx context.Context, id string, p *throttle.Policy) error {
	e, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	if p == nil {
		if err := s.queue.RemovePolicy(ctx, e.Key); err != nil {
			return err
		}
		return s.mark(ctx, id, false)
	}
	own := *p
	own.Key = e.Key
	if err := own.Validate(); err != nil {
		return err
	}
	if err := s.mark(ctx, id, true); err != nil { // first, so that Delete knows of it
		return err
	}
	return s.queue.SetPolicy(ctx, own)
}

func (s *Endpoints) mark(ctx context.Context, id string, ownPolicy bool) error {
	_, err := s.update(ctx, id, func(e *Endpoint, _ time.Time) error {
		e.ownPolicy = ownPolicy
		return nil
	})
	if err != nil {
		return failed("mark the policy of", id, err)
	}
	return nil
}
