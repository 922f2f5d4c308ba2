package throttle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle/internal/script"
)

// QueueConfig sets up a [Queue]. The zero value is ready to use.
type QueueConfig struct {
	// Shards is the number of parts the state is split into, each in one hash slot
	// of a Redis Cluster. It is fixed by whoever comes first. 0 means the number that
	// is stored, DefaultShards if none is; at most MaxShards.
	Shards int
	// MaxJobSize bounds a job's payload, in bytes. 0 means DefaultMaxJobSize. Its
	// headers have a bound of their own, MaxHeaderBytes.
	MaxJobSize int
	// Logger takes what no caller can be told. nil discards it.
	Logger *slog.Logger
}

func (c QueueConfig) withDefaults() QueueConfig {
	if c.MaxJobSize == 0 {
		c.MaxJobSize = DefaultMaxJobSize
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// A Queue is the way to the stored state: producers enqueue through it, and a
// [Scheduler] and [Permits] are made from it. It is safe for concurrent use.
type Queue struct {
	store   *store
	maxSize int
	logger  *slog.Logger
}

// NewQueue checks the server behind client and returns a Queue on it. A server
// that may evict stored jobs, or one set up with another number of shards, is
// refused with an [*InvalidError]. The client stays the caller's to close; give it
// ContextTimeoutEnabled, as [Open] does, or deadlines do not cut a stalled call.
func NewQueue(ctx context.Context, client redis.UniversalClient, config QueueConfig) (*Queue, error) {
	return newQueue(ctx, client, config, script.NewSet())
}

func newQueue(ctx context.Context, client redis.UniversalClient, config QueueConfig, scripts *script.Set) (*Queue, error) {
	config = config.withDefaults()
	if config.MaxJobSize < 1 {
		return nil, invalid("max_job_size", config.MaxJobSize, "a positive number of bytes")
	}
	s, err := openStore(ctx, client, config.Shards, scripts)
	if err != nil {
		return nil, err
	}
	return &Queue{store: s, maxSize: config.MaxJobSize, logger: config.Logger}, nil
}

// SetPolicies replaces all stored policies. Schedulers look at every bucket again,
// so jobs that wait feel the change, within a second or so for thousands of keys; a
// key that has its most jobs in flight, when one of them ends.
// Nothing is written if one policy is invalid or two are for one key.
func (q *Queue) SetPolicies(ctx context.Context, policies []Policy) error {
	seen := make(map[string]bool, len(policies))
	perShard := make([][]string, q.store.shards)
	for i, p := range policies {
		p = p.withDefaults()
		place := fmt.Sprintf("policies[%d]", i)
		if err := p.Validate(); err != nil {
			return within(place, err)
		}
		if seen[p.Key] {
			return within(place, invalid("key", p.Key, "one policy a key"))
		}
		seen[p.Key] = true
		for shard := range perShard {
			if p.Key == AnyKey || shard == q.store.shard(p.Key) {
				perShard[shard] = append(perShard[shard], p.Key, p.text())
			}
		}
	}
	calls := make([]*script.Call, q.store.shards)
	for shard := range calls {
		calls[shard] = q.store.scripts.Policies(shard, perShard[shard])
	}
	if err := q.store.run(ctx, calls...); err != nil {
		return fmt.Errorf("set policies: %w", err)
	}
	return nil
}

func (p Policy) text() string {
	return script.PolicyText(p.Limit.Rate, p.Limit.Period.Microseconds(), p.Limit.Burst, p.MaxInFlight)
}

// ErrNoJob is returned when there is no job of that key and id.
var ErrNoJob = errors.New("no such job")

// States of a job.
const (
	Waiting  = "waiting"  // in its bucket
	Delayed  = "delayed"  // until its not-before or its next attempt
	Released = "released" // on its way to a worker
	Running  = "running"  // in a worker's hands, its slot given
)

// JobInfo is what is known of a job that has not ended.
type JobInfo struct {
	Receipt
	State    string // Waiting, Delayed, Released or Running
	Attempts int    // begun so far
}

// Job looks up a job that has not ended. The error is [ErrNoJob] if there is none.
func (q *Queue) Job(ctx context.Context, key, id string) (JobInfo, error) {
	call := q.store.scripts.Find(q.store.shard(key), key, id)
	if err := q.store.run(ctx, call); err != nil {
		return JobInfo{}, fmt.Errorf("look up job %q of key %q: %w", id, key, err)
	}
	now, at, attempts, ok := call.Found()
	if !ok {
		return JobInfo{}, fmt.Errorf("look up job %q of key %q: %w", id, key, ErrNoJob)
	}
	return JobInfo{Receipt: receipt(key, id, now, at), State: at.State, Attempts: int(attempts)}, nil
}

// KeyInfo counts the jobs of a key.
type KeyInfo struct {
	Waiting, Delayed, InFlight int64
	Level                      float64 // cost in the bucket
	Policy                     Policy  // the one in force
}

// Key tells how a key stands. A key that nobody has used has no jobs and the
// policy that it would get.
func (q *Queue) Key(ctx context.Context, key string) (KeyInfo, error) {
	call := q.store.scripts.Stat(q.store.shard(key), key)
	if err := q.store.run(ctx, call); err != nil {
		return KeyInfo{}, fmt.Errorf("count jobs of key %q: %w", key, err)
	}
	n := call.Counts()
	return KeyInfo{
		Waiting: n.Waiting, Delayed: n.Delayed, InFlight: n.InFlight, Level: float64(n.MicroLevel) / 1e6,
		Policy: Policy{
			Key:         key,
			Limit:       Limit{Rate: n.Rate, Period: time.Duration(n.Period) * time.Microsecond, Burst: n.Burst},
			MaxInFlight: int(n.MaxInFlight),
		},
	}, nil
}

// Purge removes the waiting and delayed jobs of a key and tells how many there
// were. Jobs on their way to a worker or running are not touched.
func (q *Queue) Purge(ctx context.Context, key string) (int64, error) {
	const page = 1000 // jobs a call, to keep Redis free for others
	var total int64
	for {
		call := q.store.scripts.Purge(q.store.shard(key), key, page)
		if err := q.store.run(ctx, call); err != nil {
			return total, fmt.Errorf("purge key %q: %w", key, err)
		}
		n := call.Count()
		total += n
		if n < page {
			return total, nil
		}
	}
}
