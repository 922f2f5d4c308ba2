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
// burst + rate × time, or along the ramp of its policy. A key that rests since the other side of its calls said so, whose circuit
// is open or that is disabled goes on as well, if it is named exactly.
func (q *Queue) Resume(ctx context.Context, names ...string) error {
	return q.control(ctx, script.Resume, time.Time{}, names)
}

// Drain has keys take no new jobs, until Resume; what waits goes on leaving. To
// enqueue is refused with [ErrDraining] meanwhile. Names are as with Pause.
func (q *Queue) Drain(ctx context.Context, names ...string) error {
	return q.control(ctx, script.Drain, time.Time{}, names)
}

// CoolDown keeps the jobs of keys where they are until an instant by the clock of
// Redis, at most MaxCoolDown from now by this process'. Names are as with Pause. A later call replaces
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
	till := max(0, until.UnixMicro())
	for page := range slices.Chunk(names, controlPage) {
		calls := q.controlCalls(what, till, page, families)
		if err := q.store.run(ctx, calls...); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// controlCalls are those that a change of names takes. Each is written to the trail
// once, by the shard that its name hashes to.
func (q *Queue) controlCalls(what string, till int64, names []string, families bool) (calls []*script.Call) {
	for shard := range q.store.shards {
		var own, others []string
		for _, name := range names {
			switch {
			case shard == q.store.natural(name):
				own = append(own, name)
			case families || isPattern(name): // a member of a family may be in any shard
				others = append(others, name)
			}
		}
		if len(own) > 0 {
			calls = append(calls, q.store.scripts.Control(shard, what, till, q.who, own))
		}
		if len(others) > 0 {
			calls = append(calls, q.store.scripts.Control(shard, what, till, "", others))
		}
	}
	return calls
}

// spreadHolds writes the holds of exact keys to all shards, once keys may be in any:
// until then each is only where its name hashes to.
func (q *Queue) spreadHolds(ctx context.Context) error {
	for shard := range q.store.shards {
		err := q.store.scan(ctx, script.HoldKey(shard), func(name, text string) error {
			return q.spreadHold(ctx, name, parseHold(text))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (q *Queue) spreadHold(ctx context.Context, name string, h holdState) error {
	var calls []*script.Call
	for shard := range q.store.shards {
		if shard == q.store.natural(name) || isPattern(name) {
			continue
		}
		add := func(what string, till int64) {
			calls = append(calls, q.store.scripts.Control(shard, what, till, "", []string{name}))
		}
		if h.paused {
			add(script.Pause, 0)
		}
		if h.draining {
			add(script.Drain, 0)
		}
		if h.cool.After(time.Now()) {
			add(script.CoolDown, h.cool.UnixMicro())
		}
	}
	return q.store.run(ctx, calls...)
}

// families tells whether any policy has, or ever had, a parent.
func (s *store) families(ctx context.Context) (bool, error) {
	texts := make([]*redis.StringCmd, s.shards)
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for shard := range texts {
			texts[shard] = p.Get(ctx, script.VersionKey(shard))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, err
	}
	for _, text := range texts {
		if v := text.Val(); v != "" && !strings.HasSuffix(v, " 0") {
			return true, nil
		}
	}
	return false, nil
}
