package webhook

import (
	"context"
	"fmt"
)

// Delete removes an endpoint, the policy that SetPolicy gave its key, and the pause of Disable; the latter two
// stay if other endpoints have the same key and need them. Jobs that wait for it fail for good
// at their turn. The error is [ErrNotFound] if there is none.
func (s *Endpoints) Delete(ctx context.Context, id string) error {
	e, err := s.remove(ctx, id)
	if err == nil {
		err = s.leave(ctx, e)
	}
	if err != nil {
		return failed("delete", id, err)
	}
	return nil
}

func (s *Endpoints) remove(ctx context.Context, id string) (Endpoint, error) {
	for range mostTries {
		if !isEndpointID(id) {
			return Endpoint{}, ErrNotFound
		}
		text, err := s.store.read(ctx, id)
		if err != nil {
			return Endpoint{}, err
		}
		if text == "" {
			return Endpoint{}, ErrNotFound
		}
		e, damaged := decodeEndpoint(id, text)
		if damaged != nil { // can be removed all the same
			e = Endpoint{ID: id, Key: keyPrefix + id, Disabled: true, ownPolicy: true}
		}
		if done, err := s.store.put(ctx, id, text, ""); err != nil || done {
			return e, err
		}
	}
	return Endpoint{}, ErrBusy
}

// leave undoes what an endpoint that is removed did to its key, its circuit included if the key is nobody else's.
func (s *Endpoints) leave(ctx context.Context, e Endpoint) error {
	others, _, err := s.sharing(ctx, e.Key)
	if err == nil && (e.Disabled || others == 0) {
		err = s.settle(ctx, e.Key)
	}
	if err == nil && e.ownPolicy && others == 0 {
		err = s.queue.RemovePolicy(ctx, e.Key)
	}
	if err != nil {
		return fmt.Errorf("the record is gone, but key %q may still be held or have its policy: %w", e.Key, err)
	}
	return nil
}
