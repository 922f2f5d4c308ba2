package throttle

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/weirq/weir/throttle/internal/script"
)

// ErrFull is matched by every [*FullError] through errors.Is.
var ErrFull = errors.New("as many jobs wait as may")

// A FullError tells of jobs that were not taken because too many wait already.
type FullError struct {
	Key     string // whose jobs; empty if the bound is that on all keys together
	Refused int    // jobs of the call that were not taken
	Waiting int64  // jobs that wait, delayed ones included
	Max     int64  // the bound
	// Until is when the next one leaves, as far as can be told, by the clock of Redis; zero
	// if it cannot, and for the bound on all keys.
	Until time.Time
}

func (e *FullError) Error() string {
	whose := "in all keys"
	if e.Key != "" {
		whose = "in key " + strconv.Quote(e.Key)
	}
	text := fmt.Sprintf("jobs refused: %d; waiting or delayed %s: %d, of at most %d", e.Refused, whose, e.Waiting, e.Max)
	if !e.Until.IsZero() {
		text += "; the next one leaves at " + e.Until.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return text
}

// Is makes errors.Is(err, ErrFull) true.
func (e *FullError) Is(target error) bool { return target == ErrFull }

// SetMaxWaiting bounds the jobs that wait in all keys together, delayed ones included,
// for all producers; 0 means no bound. A job above it is refused with a [*FullError].
// What other producers add within a tenth of a second may come on top.
func (q *Queue) SetMaxWaiting(ctx context.Context, most int64) error {
	if most < 0 || most > MaxWaitingBound {
		return invalid("max_waiting", most, "1 to %d, or 0 for no bound", int64(MaxWaitingBound))
	}
	calls := make([]*script.Call, q.store.shards)
	for shard := range calls {
		who := ""
		if shard == 0 {
			who = q.who
		}
		calls[shard] = q.store.scripts.Bound(shard, most, who)
	}
	if err := q.store.run(ctx, calls...); err != nil {
		return fmt.Errorf("set max waiting: %w", err)
	}
	return nil
}

// crowd is how many jobs wait in each shard, for a bound on all of them. It is asked
// for only once a script wants to know.
type crowd struct {
	mu      sync.Mutex
	wanted  bool
	asked   time.Time
	waiting []int64
}

// crowdAge is how old what is known may be.
const crowdAge = 100 * time.Millisecond

// others is how many jobs wait in other shards than this one, -1 if nobody wants to
// know.
func (c *crowd) others(ctx context.Context, s *store, shard int) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.wanted {
		return -1, nil
	}
	if time.Since(c.asked) > crowdAge {
		calls := make([]*script.Call, s.shards)
		for i := range calls {
			calls[i] = s.scripts.Count(i)
		}
		if err := s.run(ctx, calls...); err != nil {
			return 0, fmt.Errorf("count what waits: %w", err)
		}
		c.waiting, c.asked = make([]int64, s.shards), time.Now()
		c.wanted = false
		for i, call := range calls {
			t := call.Totals()
			c.waiting[i] = t.Counters[Waiting] + t.Counters[Delayed]
			c.wanted = c.wanted || t.Most > 0
		}
	}
	var n int64
	for i, w := range c.waiting {
		if i != shard {
			n += w
		}
	}
	return n, nil
}

// bounded tells whether there is a bound on all keys, as far as is known.
func (c *crowd) bounded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted
}

func (c *crowd) want() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.wanted {
		c.wanted, c.asked = true, time.Time{}
	}
}

// added counts what this process put into a shard since.
func (c *crowd) added(shard int, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted && len(c.waiting) > shard {
		c.waiting[shard] += n
	}
}
