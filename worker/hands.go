package worker

import (
	"context"
	"sync"
	"time"

	"github.com/weirq/weir/throttle"
)

// hands is every job at hand, from its parcel until Redis knows of its end.
type hands struct {
	mu     sync.Mutex
	shards []map[*held]struct{}
	count  int
	empty  *sync.Cond
}

func newHands(shards int) *hands {
	h := &hands{shards: make([]map[*held]struct{}, shards)}
	for i := range h.shards {
		h.shards[i] = make(map[*held]struct{})
	}
	h.empty = sync.NewCond(&h.mu)
	return h
}

func (s *hands) take(h *held, shard int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.shard = shard
	s.shards[shard][h] = struct{}{}
	s.count++
}

func (s *hands) leave(h *held) {
	s.mu.Lock()
	delete(s.shards[h.shard], h)
	if s.count--; s.count == 0 {
		s.empty.Broadcast()
	}
	s.mu.Unlock()
	h.parcel.end()
}

// wait returns once no job is at hand.
func (s *hands) wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.count > 0 {
		s.empty.Wait()
	}
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
	for h := range s.shards[shard] {
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
		for shard := range s.permits.Shards() {
			jobs := s.hands.of(shard)
			for len(jobs) > 0 {
				n := min(renewBatch, len(jobs))
				s.extend(ctx, jobs[:n])
				jobs = jobs[n:]
			}
		}
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
