package worker

import (
	"context"
	"sync"
	"time"
)

// A batcher groups items into calls, one call at a time: what comes while a call
// is on its way shares the next. So an idle worker makes its call at once, and a
// busy one makes few.
type batcher[T any] struct {
	most int
	call func(ctx context.Context, items []T) error // repeated until it succeeds

	mu    sync.Mutex
	items []T
	ready chan struct{} // holds one message: there are items
}

func newBatcher[T any](most int, call func(context.Context, []T) error) *batcher[T] {
	return &batcher[T]{most: most, call: call, ready: make(chan struct{}, 1)}
}

func (b *batcher[T]) add(items ...T) {
	b.mu.Lock()
	b.items = append(b.items, items...)
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

func (b *batcher[T]) take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.items), b.most)
	items := b.items[:n:n]
	b.items = b.items[n:]
	return items
}

// run makes calls until ctx ends.
func (b *batcher[T]) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.ready:
		}
		for items := b.take(); len(items) > 0; items = b.take() {
			for failures := 0; b.call(ctx, items) != nil; failures++ {
				select {
				case <-ctx.Done():
					return
				case <-time.After(min(time.Second, 5*time.Millisecond<<min(failures, 8))):
				}
			}
		}
	}
}
