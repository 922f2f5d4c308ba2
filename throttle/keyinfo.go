package throttle

import (
	"context"
	"fmt"
	"time"

	"github.com/weirq/weir/throttle/internal/script"
)

// KeyInfo tells how a key stands. Instants are by the clock of Redis.
type KeyInfo struct {
	Key                        string
	At                         time.Time // of this answer
	Waiting, Delayed, InFlight int64     // jobs
	Kept                       int64     // jobs that are dead or done and kept
	Level                      float64   // cost in the bucket
	Backlog                    float64   // cost that waits in the line
	// Oldest is when the job that leaves next was enqueued; zero if none waits. With
	// priorities, an older one may stand behind it.
	Oldest time.Time
	// Empty is when the last of those that wait leaves, as estimated; zero if only an
	// event can tell.
	Empty  time.Time
	Policy Policy // the one in force
	// Damaged is why the policy cannot be read, as told by Keys: only Key and the counts are
	// set then. nil if it can.
	Damaged error
}

// Key tells how a key stands. A key that nobody has used has no jobs and the
// policy that it would get.
func (q *Queue) Key(ctx context.Context, key string) (KeyInfo, error) {
	if err := ValidateKey(key); err != nil {
		return KeyInfo{}, err
	}
	n, err := q.counts(ctx, key)
	if err == nil {
		var info KeyInfo
		if info, err = keyInfo(key, n); err == nil {
			return info, nil
		}
	}
	return KeyInfo{}, fmt.Errorf("count jobs of key %q: %w", key, err)
}

func (q *Queue) counts(ctx context.Context, key string) (n script.Counts, err error) {
	err = q.store.follow(ctx, key, func(shard int) *script.Call {
		return q.store.scripts.Stat(shard, key)
	}, func(_ int, c *script.Call) int {
		n = c.Counts()
		return n.Home
	})
	return n, err
}

func keyInfo(key string, n script.Counts) (KeyInfo, error) {
	info := KeyInfo{
		Key: key, At: time.UnixMicro(n.Now), Waiting: n.Waiting, Delayed: n.Delayed, InFlight: n.InFlight, Kept: n.Ended,
		Level: float64(n.MicroLevel) / 1e6, Backlog: float64(n.MicroBacklog) / 1e6,
	}
	var err error
	if info.Policy, err = policyFromText(key, n.Policy); err != nil {
		return info, err
	}
	if n.Oldest > 0 {
		info.Oldest = time.UnixMicro(n.Oldest + n.Now - n.ShardNow)
	}
	if n.Waiting > 0 {
		last := max(1, info.Backlog/float64(n.Waiting))
		info.Empty = newEstimator(n.Now, n.ShardNow, n.Outlook).
			departure(info.Backlog-last, n.Waiting-1, int64(last), 0)
	}
	return info, nil
}
