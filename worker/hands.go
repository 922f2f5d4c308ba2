package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weirq/weir/throttle"
)

// hands is every job at hand, from its parcel until Redis knows of its end.
type hands struct {
	mu        sync.Mutex
	shards    []map[throttle.Hold]*held // by their releases
	count     int
	abandoned bool
	empty     *sync.Cond
}

// release names a job as its parcel does.
func (h *held) release() throttle.Hold {
	return throttle.Hold{Key: h.hold.Key, ID: h.hold.ID, Release: h.hold.Release, Shard: h.hold.Shard}
}

func newHands(shards int) *hands {
	h := &hands{shards: make([]map[throttle.Hold]*held, shards)}
	for i := range h.shards {
		h.shards[i] = make(map[throttle.Hold]*held)
	}
	h.empty = sync.NewCond(&h.mu)
	return h
}

// take tells whether a job was not at hand already: asynq may deliver a parcel again
// while its jobs wait in line, and two that ask to depart in one call would both be
// told to go.
func (s *hands) take(h *held) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.shards[h.hold.Shard]
	if _, known := at[h.release()]; known {
		return false
	}
	at[h.release()] = h
	s.count++
	return true
}

func (s *hands) leave(h *held) {
	s.mu.Lock()
	delete(s.shards[h.hold.Shard], h.release())
	if s.count--; s.count == 0 {
		s.empty.Broadcast()
	}
	s.mu.Unlock()
	h.parcel.end()
}

// wait returns once no job is at hand, or all were abandoned.
func (s *hands) wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.count > 0 && !s.abandoned {
		s.empty.Wait()
	}
}

func (s *hands) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = true
	s.empty.Broadcast()
}

func (s *hands) all() (jobs []*held) {
	for shard := range s.shards {
		jobs = append(jobs, s.of(shard)...)
	}
	return jobs
}

func (s *hands) of(shard int) []*held {
	s.mu.Lock()
	defer s.mu.Unlock()
	jobs := make([]*held, 0, len(s.shards[shard]))
	for _, h := range s.shards[shard] {
		jobs = append(jobs, h)
	}
	return jobs
}

// renewBatch bounds the jobs of one call.
const renewBatch = 256

// renew extends the leases of the jobs at hand until ctx ends.
func (s *Server) renew(ctx context.Context) {
	ticker := time.NewTicker(s.config.Lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// Shards may lie on servers of their own: one that does not answer must not
		// cost the jobs of the others their leases.
		var shards sync.WaitGroup
		for shard := range s.permits.Shards() {
			shards.Go(func() { s.renewShard(ctx, shard) })
		}
		shards.Wait()
	}
}

func (s *Server) renewShard(ctx context.Context, shard int) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Lease/3)
	defer cancel()
	for jobs := range slices.Chunk(s.hands.of(shard), renewBatch) {
		s.extend(ctx, jobs)
	}
}

// extend renews leases; a job that Redis has given to another is stopped.
func (s *Server) extend(ctx context.Context, jobs []*held) {
	var holds []throttle.Hold
	var resting []*held
	var moves []int
	for _, h := range jobs {
		if hold, n, ok := h.resting(); ok {
			holds, resting, moves = append(holds, hold), append(resting, h), append(moves, n)
		}
	}
	if len(holds) == 0 {
		return
	}
	ours, err := s.permits.Extend(ctx, s.config.Lease, holds)
	if err != nil {
		s.config.Logger.Warn("extending leases failed", "jobs", len(holds), "error", err)
		return
	}
	for i, held := range ours {
		if !held {
			resting[i].lose(moves[i])
		}
	}
}
