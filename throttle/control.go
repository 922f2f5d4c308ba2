package throttle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle/internal/script"
)

// Pause keeps the jobs of keys where they are, until Resume. Each name is an exact key,
// whether anybody uses it or not, or a pattern, which also stands for keys to come. A
// key is paused as long as one name that it matches is; so is a key whose parent is.
// Jobs already on their way to a worker go back when they ask to depart; those that
// run, run on.
func (q *Queue) Pause(ctx context.Context, names ...string) error {
	return q.control(ctx, script.Pause, time.Time{}, names)
}

// Resume ends Pause, Drain and CoolDown under these names. What waits then leaves at
// burst + rate × time, or along the ramp of its policy.
func (q *Queue) Resume(ctx context.Context, names ...string) error {
	return q.control(ctx, script.Resume, time.Time{}, names)
}

// Drain has keys take no new jobs, until Resume; what waits goes on leaving. To
// enqueue is refused with [ErrDraining] meanwhile. Names are as with Pause.
func (q *Queue) Drain(ctx context.Context, names ...string) error {
	return q.control(ctx, script.Drain, time.Time{}, names)
}

// CoolDown keeps the jobs of keys where they are until an instant by the clock of
// Redis, at most MaxCoolDown from now. Names are as with Pause. A later call replaces
// an earlier one, and one with an instant that has passed ends it.
func (q *Queue) CoolDown(ctx context.Context, until time.Time, names ...string) error {
	if d := time.Until(until); d > MaxCoolDown {
		return invalid("until", until.Format(time.RFC3339), "an instant at most %v from now", MaxCoolDown)
	}
	return q.control(ctx, script.CoolDown, until, names)
}

// MaxCoolDown bounds how far ahead a cool-down may end.
const MaxCoolDown = 366 * 24 * time.Hour

// controlPage bounds the names of one call: what Redis does in a few milliseconds.
const controlPage = 100

func (q *Queue) control(ctx context.Context, what string, until time.Time, names []string) error {
	for _, name := range names {
		if err := ValidatePolicyName(name); err != nil {
			return err
		}
	}
	families, err := q.store.families(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	own, others := make(map[int][]string), make(map[int][]string)
	for _, name := range names {
		natural := q.store.natural(name)
		own[natural] = append(own[natural], name)
		for shard := range q.store.shards {
			// A member of a family may be in any shard.
			if shard != natural && (families || isPattern(name)) {
				others[shard] = append(others[shard], name)
			}
		}
	}
	till := max(0, until.UnixMicro())
	for who, perShard := range map[string]map[int][]string{q.who: own, "": others} {
		for shard, list := range perShard {
			for page := range slices.Chunk(list, controlPage) {
				if err := q.store.run(ctx, q.store.scripts.Control(shard, what, till, who, page)); err != nil {
					return fmt.Errorf("%s: %w", what, err)
				}
			}
		}
	}
	return nil
}

// families tells whether any policy has, or ever had, a parent.
func (s *store) families(ctx context.Context) (bool, error) {
	// All shards are told together; one that was not yet tells with the next change.
	text, err := s.client.Get(ctx, script.VersionKey(0)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, err
	}
	return text != "" && !strings.HasSuffix(text, " 0"), nil
}
