package throttle

import (
	"context"
	"errors"
	"fmt"
	"strconv"
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
			err := errors.Join(eachServer(ctx, s.store.client, s.auditServer), s.tidy(ctx))
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
			prefix, key, ok := strings.Cut(name, "}:b:")
			shard, err := strconv.Atoi(strings.TrimPrefix(prefix, "weir:{"))
			if !ok || err != nil || shard < 0 || shard >= s.store.shards {
				continue
			}
			if err := s.auditBucket(ctx, shard, key); err != nil {
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

func (s *Scheduler) auditBucket(ctx context.Context, shard int, key string) error {
	repairs, err := s.store.repair(ctx, shard, key, s.config.Lease)
	if repairs > 0 {
		s.config.Logger.Warn("bucket repaired", "key", key, "repairs", repairs)
		s.leases.set(shard, s.config.Lease.Microseconds())
	}
	return err
}

// tidy forgets holds that are long over.
func (s *Scheduler) tidy(ctx context.Context) error {
	for shard := range s.store.shards {
		for cursor := "0"; ; {
			call := s.store.scripts.Tidy(shard, cursor)
			if err := s.store.run(ctx, call); err != nil {
				return err
			}
			if cursor = call.Cursor(); cursor == "0" {
				break
			}
			sleep(ctx, auditPause)
		}
	}
	return ctx.Err()
}

// repair checks one bucket, page by page.
func (s *store) repair(ctx context.Context, shard int, key string, lease time.Duration) (total int64, err error) {
	for cursor := "0"; ; {
		call := s.scripts.Audit(shard, key, cursor, lease.Microseconds())
		if err := s.run(ctx, call); err != nil {
			return total, err
		}
		next, repairs := call.Audited()
		total += repairs
		if cursor = next; cursor == "0" {
			return total, nil
		}
	}
}

// Repair checks the bookkeeping of a key and its parents at once and tells how many repairs it needed:
// jobs in flight are counted anew, those without a lease get one, and a line that
// nobody would look at is looked at. Schedulers do the same for all keys, slowly.
func (q *Queue) Repair(ctx context.Context, key string) (repairs int64, err error) {
	if err := ValidateKey(key); err != nil {
		return 0, err
	}
	info, err := q.Explain(ctx, key) // which learns where its family is
	if err != nil {
		return 0, fmt.Errorf("repair key %q: %w", key, err)
	}
	for _, link := range info.Chain { // a wrong count of a parent holds its children
		n, err := q.store.repair(ctx, q.store.shard(key), link.Key, 10*time.Second)
		if repairs += n; err != nil {
			return repairs, fmt.Errorf("repair key %q: %w", key, err)
		}
	}
	return repairs, nil
}
