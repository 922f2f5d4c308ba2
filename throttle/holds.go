package throttle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirq/weir/throttle/internal/script"
)

// A HeldName is a name that holds keys: see [Queue.Pause].
type HeldName struct {
	Name             string // exact key or pattern
	Paused, Draining bool
	CoolUntil        time.Time // by the clock of Redis; zero if it does not cool down
}

// Matches tells whether the name stands for a key.
func (h HeldName) Matches(key string) bool {
	before, after, pattern := strings.Cut(h.Name, "*")
	if !pattern {
		return h.Name == key
	}
	return len(key) >= len(before)+len(after) && strings.HasPrefix(key, before) && strings.HasSuffix(key, after)
}

// Holds lists the names that hold keys at the moment, in byte order.
func (q *Queue) Holds(ctx context.Context) ([]HeldName, error) {
	now, err := q.store.now(ctx)
	if err != nil {
		return nil, fmt.Errorf("list holds: %w", err)
	}
	found := make(map[string]HeldName)
	for shard := range q.store.shards {
		err := q.store.scan(ctx, script.HoldKey(shard), func(name, text string) error {
			state := parseHold(text)
			h := HeldName{Name: name, Paused: state.paused, Draining: state.draining}
			if state.cool.After(now) {
				h.CoolUntil = state.cool
			}
			if h != (HeldName{Name: name}) {
				found[name] = h
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list holds: %w", err)
		}
	}
	list := make([]HeldName, 0, len(found))
	for _, h := range found {
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b HeldName) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// now is the time by the clock of Redis.
func (s *store) now(ctx context.Context) (time.Time, error) {
	return s.client.Time(ctx).Result()
}

const scanPage = 1000 // names a step

// scan goes through a hash page by page.
func (s *store) scan(ctx context.Context, name string, f func(field, value string) error) error {
	for cursor := uint64(0); ; {
		pairs, next, err := s.client.HScan(ctx, name, cursor, "", scanPage).Result()
		if err != nil {
			return err
		}
		for i := 0; i+1 < len(pairs); i += 2 {
			if err := f(pairs[i], pairs[i+1]); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
