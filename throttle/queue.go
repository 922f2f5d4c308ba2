package throttle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

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
	who     string
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
	return &Queue{store: s, maxSize: config.MaxJobSize, logger: config.Logger, who: filepath.Base(os.Args[0])}, nil
}

// As returns the same queue acting for somebody: the audit trail names who changed
// policies, held keys or purged them. Without it, or for an empty who, that is the name
// of the program. At most MaxWhoBytes bytes of who are kept.
func (q *Queue) As(who string) *Queue {
	other := *q
	if who != "" {
		other.who = strings.ToValidUTF8(who[:min(len(who), MaxWhoBytes)], "")
	}
	return &other
}

// MaxWhoBytes bounds the name that an entry of the audit trail has.
const MaxWhoBytes = 128

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
	var info JobInfo
	found := false
	err := q.store.follow(ctx, key, func(shard int) *script.Call {
		return q.store.scripts.Find(shard, key, id)
	}, func(shard int, c *script.Call) int {
		home, now, at, attempts, ok := c.Found()
		if found = ok; ok {
			info = JobInfo{Receipt: receipt(key, id, now, at), State: at.State, Attempts: int(attempts)}
			return shard // it may still be where its key was
		}
		return home
	})
	if err == nil && !found {
		err = ErrNoJob
	}
	if err != nil {
		return JobInfo{}, fmt.Errorf("look up job %q of key %q: %w", id, key, err)
	}
	return info, nil
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
	var n script.Counts
	err := q.store.follow(ctx, key, func(shard int) *script.Call {
		return q.store.scripts.Stat(shard, key)
	}, func(_ int, c *script.Call) int {
		n = c.Counts()
		return n.Home
	})
	var p Policy
	if err == nil {
		p, err = policyFromText(key, n.Policy)
	}
	if err != nil {
		return KeyInfo{}, fmt.Errorf("count jobs of key %q: %w", key, err)
	}
	return KeyInfo{
		Waiting: n.Waiting, Delayed: n.Delayed, InFlight: n.InFlight,
		Level: float64(n.MicroLevel) / 1e6, Policy: p,
	}, nil
}
