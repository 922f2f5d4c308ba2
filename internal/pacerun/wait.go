package main

import (
	"context"
	"fmt"
	"time"
)

// until asks again and again whether something is done.
func until(ctx context.Context, atMost time.Duration, done func() bool) error {
	end := time.Now().Add(atMost)
	for !done() {
		if time.Now().After(end) {
			return fmt.Errorf("not done after %v", atMost)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

// rest lets a while pass.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
