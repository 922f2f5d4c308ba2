package throttle

import (
	"context"
	"fmt"

	"github.com/weirq/weir/throttle/internal/script"
)

// Stats counts what is stored, in all keys together.
type Stats struct {
	Keys     int64 // that have jobs waiting, delayed or in flight, or children that do
	Waiting  int64
	Delayed  int64
	InFlight int64 // released and running
	Dead     int64 // dead letters that are kept
	Done     int64 // done jobs that are kept
	// MaxWaiting is the bound on waiting and delayed jobs; 0: none.
	MaxWaiting int64
	Totals     Totals
}

// Totals count since the state was begun.
type Totals struct {
	Enqueued  int64 // jobs taken
	Departed  int64 // attempts begun
	Done      int64 // jobs
	Retried   int64 // attempts that failed and are followed by another
	Dead      int64 // jobs
	Expired   int64 // jobs that waited too long
	Cancelled int64 // jobs
	Purged    int64 // jobs
	Displaced int64 // jobs dropped for a newer one
	Dropped   int64 // new jobs dropped at the bound of their key
	Refused   int64 // new jobs refused at a bound
	Replaced  int64 // jobs that a newer one took the place of
	Replayed  int64 // jobs brought back
	Discarded int64 // dead letters and done jobs thrown away by hand
	Evicted   int64 // dead letters removed for their number or age
}

// Stats counts what is stored. It costs one call a shard, however much that is.
func (q *Queue) Stats(ctx context.Context) (Stats, error) {
	calls := make([]*script.Call, q.store.shards)
	for shard := range calls {
		calls[shard] = q.store.scripts.Count(shard)
	}
	if err := q.store.run(ctx, calls...); err != nil {
		return Stats{}, fmt.Errorf("count: %w", err)
	}
	var s Stats
	for _, c := range calls {
		s.add(c.Totals())
	}
	return s, nil
}

func (s *Stats) add(t script.Totals) {
	s.Keys += t.Keys
	s.InFlight += t.InFlight
	s.Dead += t.Dead
	s.Done += t.Done
	s.MaxWaiting = max(s.MaxWaiting, t.Most)
	for name, n := range map[string]*int64{
		"waiting": &s.Waiting, "delayed": &s.Delayed,
		"enqueued": &s.Totals.Enqueued, "departed": &s.Totals.Departed, script.Done: &s.Totals.Done,
		script.Retry: &s.Totals.Retried, script.Dead: &s.Totals.Dead, "expired": &s.Totals.Expired,
		"cancelled": &s.Totals.Cancelled, "purged": &s.Totals.Purged, "displaced": &s.Totals.Displaced,
		"dropped": &s.Totals.Dropped, "refused": &s.Totals.Refused, "replaced": &s.Totals.Replaced,
		"replayed": &s.Totals.Replayed, "discarded": &s.Totals.Discarded, "evicted": &s.Totals.Evicted,
	} {
		*n += t.Counters[name]
	}
}
