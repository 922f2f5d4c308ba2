package worker

import (
	"context"

	"github.com/weirq/weir/throttle"
)

// ending is the end of a job's run, on its way to Redis.
type ending struct {
	held    *held
	verdict verdict
}

// endingBatch bounds the jobs of one call: what Redis does in about a millisecond.
const endingBatch = 128

func (s *Server) newEndings() []*batcher[ending] {
	shards := make([]*batcher[ending], s.permits.Shards())
	for i := range shards {
		shards[i] = newBatcher(endingBatch, s.finish)
	}
	return shards
}

// settle says what becomes of an admitted job and frees its place. The first word
// counts. The job's parcel has ended only when Redis knows.
func (s *Server) settle(h *held, v verdict) {
	if !h.end() {
		return
	}
	s.places.leave(1)
	if e := v.ending(throttle.Hold{}, &h.cost, Feedback{}); e.Settled {
		s.departures.credit(h, h.job.Cost-e.Cost)
	}
	s.write(h, v)
}

// giveBack returns a job that was never admitted.
func (s *Server) giveBack(h *held) {
	if h.end() {
		s.write(h, verdict{outcome: Parked})
	}
}

// drop lets go of an admitted job that is not ours any more; Redis knows.
func (s *Server) drop(h *held, o Outcome) {
	if h.end() {
		s.places.leave(1)
		s.metrics.attempted(o, 0)
		s.hands.leave(h)
	}
}

func (s *Server) write(h *held, v verdict) {
	if v.outcome == Gone {
		s.hands.leave(h)
		return
	}
	s.endings[h.hold.Shard].add(ending{h, v})
}

func (s *Server) finish(ctx context.Context, items []ending) error {
	endings := make([]throttle.Ending, len(items))
	for i, e := range items {
		endings[i] = e.verdict.ending(e.held.move(), &e.held.cost, e.held.feedback(e.verdict))
	}
	if _, err := s.permits.Finish(ctx, endings); err != nil {
		s.config.Logger.Warn("finish failed", "jobs", len(items), "error", err)
		return err
	}
	for _, e := range items {
		s.hands.leave(e.held)
	}
	return nil
}
