package webhook

import (
	"context"
	"fmt"
	"time"
)

// Disable keeps events from an endpoint until Enable: it gets no new ones, and its key is paused, so
// that its jobs wait. Those that run, run on. The reason is kept with it, and is shown to
// whoever reads the endpoint. If an error says that the key may not be paused, to call it again is
// safe; jobs that depart meanwhile go back.
func (s *Endpoints) Disable(ctx context.Context, id, reason string) (Endpoint, error) {
	return s.toggle(ctx, "disable", id, true, reason)
}

// Enable ends Disable. What waits leaves at the pace of its key. It resumes the key
// whoever paused it, unless another endpoint of the same key is disabled.
func (s *Endpoints) Enable(ctx context.Context, id string) (Endpoint, error) {
	return s.toggle(ctx, "enable", id, false, "")
}

func (s *Endpoints) toggle(ctx context.Context, what, id string, disabled bool, reason string) (Endpoint, error) {
	e, err := s.update(ctx, id, func(e *Endpoint, _ time.Time) error {
		e.Disabled, e.DisabledReason = disabled, reason
		return nil
	})
	if err == nil {
		err = s.settle(ctx, e.Key)
	}
	if err != nil {
		return Endpoint{}, failed(what, id, err)
	}
	return e, nil
}

// settle pauses or resumes a key, whichever its endpoints ask for. The record counts: where two
// processes change it at once, the one that is later in holding the key sees what the other wrote.
func (s *Endpoints) settle(ctx context.Context, key string) error {
	disabled, err := s.anyDisabled(ctx, key)
	for range mostTries {
		if err != nil {
			break
		}
		hold := s.queue.Resume
		if disabled {
			hold = s.queue.Pause
		}
		if err = hold(ctx, key); err != nil {
			break
		}
		was := disabled
		if disabled, err = s.anyDisabled(ctx, key); err == nil && disabled == was {
			return nil
		}
	}
	if err == nil {
		err = ErrBusy
	}
	return fmt.Errorf("the record is written, but key %q may not be held as it says: %w", key, err)
}

func (s *Endpoints) anyDisabled(ctx context.Context, key string) (bool, error) {
	_, disabled, err := s.sharing(ctx, key)
	return disabled, err
}

// sharing counts the endpoints of a key, and tells whether one is disabled.
func (s *Endpoints) sharing(ctx context.Context, key string) (n int, disabled bool, err error) {
	all, err := s.store.all(ctx)
	if err != nil {
		return 0, false, err
	}
	for _, e := range all.endpoints {
		if e.Key == key {
			n++
			disabled = disabled || e.Disabled
		}
	}
	return n, disabled, nil
}
