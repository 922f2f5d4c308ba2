package limiter

import (
	"context"
	"hash/maphash"
	"sync"
	"time"
)

// MemoryConfig is for tests: the zero value is right for everything else.
type MemoryConfig struct {
	// Now is the clock. By default it begins as that of the system and then runs evenly,
	// whatever is done to the latter.
	Now func() time.Time
}

// Memory keeps what keys have used in this process.
type Memory struct {
	now    func() int64
	mu     sync.Mutex
	spaces map[string]*memorySpace
}

// NewMemory makes an empty store.
func NewMemory(c MemoryConfig) *Memory {
	m := &Memory{spaces: make(map[string]*memorySpace)}
	if c.Now != nil {
		m.now = func() int64 { return c.Now().UnixMicro() }
	} else {
		begin := time.Now()
		base := begin.UnixMicro()
		m.now = func() int64 { return base + time.Since(begin).Microseconds() }
	}
	return m
}

func (m *Memory) check() error {
	if m == nil || m.spaces == nil {
		return invalid("store", "a Memory of its own making", "one that NewMemory made")
	}
	return nil
}

func (m *Memory) open(l *Limiter) space {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.spaces[l.name]
	if s == nil {
		s = &memorySpace{now: m.now, seed: maphash.MakeSeed()}
		for i := range s.shards {
			s.shards[i].keys = make(map[string]*entry)
		}
		m.spaces[l.name] = s
	}
	return memoryLimiter{l, s}
}

// memoryShards is how many keys of a limiter can be asked at once.
const memoryShards = 64

// A memorySpace is the keys of all limiters of one name.
type memorySpace struct {
	now    func() int64
	seed   maphash.Seed
	shards [memoryShards]memoryShard
}

type memoryShard struct {
	mu    sync.Mutex
	keys  map[string]*entry
	sweep int      // number of keys at which those that count as none are looked for
	_     [24]byte // shards of their own cache lines do not slow each other down
}

// An entry is what one key has used.
type entry struct {
	owner  *Limiter // whose rules the first of its meters have
	meters []meter
}

type heldState struct {
	before, after state
}

// A memoryLimiter is the keys of a name under the rules of one limiter.
type memoryLimiter struct {
	limiter *Limiter
	keys    *memorySpace
}

func (s *memorySpace) shard(key string) *memoryShard {
	return &s.shards[maphash.String(s.seed, key)%memoryShards]
}

func (m memoryLimiter) ask(ctx context.Context, q question) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	shard := m.keys.shard(q.key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	r, _ := m.decide(shard, q, false)
	return r, nil
}

func (m memoryLimiter) askMany(ctx context.Context, calls []Call) ([]Result, error) {
	results := make([]Result, len(calls))
	for i, c := range calls {
		var err error
		if results[i], err = m.ask(ctx, question{key: c.Key, cost: c.Cost}); err != nil {
			return results, err
		}
	}
	return results, nil
}

func (m memoryLimiter) hold(ctx context.Context, q question) (Result, hold, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, hold{}, err
	}
	shard := m.keys.shard(q.key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	r, h := m.decide(shard, q, true)
	return r, h, nil
}

// decide asks the meters of a key, and charges them. The shard is locked.
func (m memoryLimiter) decide(shard *memoryShard, q question, holds bool) (Result, hold) {
	now := m.keys.now()
	e := m.entry(shard, q.key, now)
	meters := e.meters[:len(m.limiter.rules)]
	slot := now
	var saved [MaxRules]state
	moved := false
	for i, x := range meters {
		saved[i] = *x.current()
		moved = x.move(now) || moved
		slot = max(slot, x.slot(now, q))
	}
	d := q.decide(now, slot)
	if d.charged || moved {
		shard.keys[q.key] = e
	}
	var h hold
	if d.charged {
		for _, x := range meters {
			x.charge(now, slot, q.cost)
		}
		if holds {
			h = hold{slot: slot, states: make([]heldState, len(meters))}
			for i, x := range meters {
				h.states[i] = heldState{saved[i], *x.current()}
			}
		}
	}
	r := tell(meters, d)
	if !d.charged && !moved {
		for i, x := range meters {
			x.restore(saved[i], *x.current())
		}
	}
	return r, h
}

// entry is that of a key, under the rules of this limiter; a new one is not stored yet.
func (m memoryLimiter) entry(shard *memoryShard, key string, now int64) *entry {
	e := shard.keys[key]
	if e != nil && e.owner == m.limiter {
		return e
	}
	meters := make([]meter, len(m.limiter.rules))
	for i, t := range m.limiter.rules {
		meters[i] = newMeter(t)
		if e != nil && i < len(e.meters) && e.meters[i].fresh() > now {
			adopt(meters[i], e.meters[i])
		}
	}
	if e == nil {
		shard.clean(now)
	} else if len(e.meters) > len(meters) {
		meters = append(meters, e.meters[len(meters):]...) // of rules that may come again
	}
	return &entry{owner: m.limiter, meters: meters}
}

// clean drops the keys that count as none, when there are twice as many keys as were left the last
// time: so a call takes a constant time, on average.
func (s *memoryShard) clean(now int64) {
	const fewest = 16
	if len(s.keys) < max(s.sweep, fewest) {
		return
	}
	for key, e := range s.keys {
		if e.idle(now) {
			delete(s.keys, key)
		}
	}
	s.sweep = 2 * len(s.keys)
}

func (e *entry) idle(now int64) bool {
	for _, m := range e.meters {
		if m.fresh() > now {
			return false
		}
	}
	return true
}

func (m memoryLimiter) cancel(_ context.Context, key string, cost int64, h hold) error {
	shard := m.keys.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	e, now := shard.keys[key], m.keys.now()
	if e == nil || h.slot <= now {
		return nil
	}
	for i, t := range m.limiter.rules {
		if i >= len(e.meters) || e.meters[i].kind() != t.kind() {
			continue // the rules have changed
		}
		x := newMeter(t)
		adopt(x, e.meters[i])
		given := x.restore(h.states[i].before, h.states[i].after)
		if !given {
			moved := x.move(now)
			given = x.giveBack(h.slot, cost) || moved
		}
		if given {
			adopt(e.meters[i], x)
		}
	}
	return nil
}

func (m memoryLimiter) reset(_ context.Context, key string) error {
	shard := m.keys.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	delete(shard.keys, key)
	return nil
}
