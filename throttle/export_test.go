package throttle

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle/internal/script"
)

// NewQueueOn is NewQueue with scripts on a clock of the test's.
func NewQueueOn(ctx context.Context, client redis.UniversalClient, config QueueConfig, scripts *script.Set) (*Queue, error) {
	return newQueue(ctx, client, config, scripts)
}

// ShardOf tells the shard of a key of q.
func ShardOf(q *Queue, key string) int { return q.store.shard(key) }

// PolicyText is a policy as the scripts store it.
func PolicyText(p Policy) string { return p.WithDefaults().text() }

// MaxWait stands for every longer wait.
const MaxWait = maxWait

// ZoneOffsets are the offsets of a zone as the scripts store them.
func ZoneOffsets(name string) ([]script.Offset, error) {
	zone, err := zoneOffsets(name)
	out := make([]script.Offset, len(zone))
	for i, o := range zone {
		out[i] = script.Offset(o)
	}
	return out, err
}
