package throttle

import (
	"context"
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
	crowd   *crowd
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
	return &Queue{store: s, maxSize: config.MaxJobSize, logger: config.Logger, who: filepath.Base(os.Args[0]), crowd: &crowd{}}, nil
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
