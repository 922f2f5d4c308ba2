package throttle

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// audit walks all buckets and repairs bookkeeping that was damaged from outside,
// by lost writes or by a hand in the data. It goes page by page with pauses, so it
// costs the same whatever the number of keys.
func (s *Scheduler) audit(ctx context.Context) {
	ticker := time.NewTicker(s.config.AuditEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			err := eachServer(ctx, s.store.client, s.auditServer)
			if err != nil && ctx.Err() == nil {
				s.config.Logger.Warn("audit failed", "error", err)
			}
		}
	}
}

const (
	auditPage  = 100                    // names of the keyspace a step
	auditPause = 100 * time.Millisecond // between steps
)

func (s *Scheduler) auditServer(ctx context.Context, server redis.UniversalClient) error {
	for cursor := uint64(0); ; {
		names, next, err := server.Scan(ctx, cursor, "weir:{*}:b:*", auditPage).Result()
		if err != nil {
			return err
		}
		for _, name := range names {
			_, key, ok := strings.Cut(name, "}:b:")
			if !ok {
				continue
			}
			if err := s.auditBucket(ctx, key); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
		sleep(ctx, auditPause)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (s *Scheduler) auditBucket(ctx context.Context, key string) error {
	shard := s.store.shard(key)
	for cursor := "0"; ; {
		call := s.store.scripts.Audit(shard, key, cursor, s.config.Lease.Microseconds())
		if err := s.store.run(ctx, call); err != nil {
			return err
		}
		next, repairs := call.Audited()
		if repairs > 0 {
			s.config.Logger.Warn("bucket repaired", "key", key, "repairs", repairs)
			s.leases.set(shard, s.config.Lease.Microseconds())
		}
		if cursor = next; cursor == "0" {
			return nil
		}
	}
}
