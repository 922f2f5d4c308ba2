package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirq/weir/throttle"
)

// load counts the jobs of a parcel that have not ended.
type load struct {
	left atomic.Int64
	done chan struct{}
}

func newLoad(jobs int) *load {
	l := &load{done: make(chan struct{})}
	l.left.Store(int64(jobs))
	if jobs == 0 {
		close(l.done)
	}
	return l
}

func (l *load) end() {
	if l.left.Add(-1) == 0 {
		close(l.done)
	}
}

// held is a job in this worker's hands, from the parcel to the end of its run.
type held struct {
	parcel  *load
	order   int64 // of arrival in this process
	arrived time.Time

	mu     sync.Mutex
	hold   throttle.Hold
	moving bool // a depart or finish is on its way: Redis may be ahead of hold
	moves  int  // so far
	cancel context.CancelCauseFunc
	lost   bool
	ended  bool

	cost trueCost // of the run, as its handler says
	told told     // of the key, by the handler

	// Set when it departs; touched only by whoever has it in hand.
	job     throttle.Job
	damaged error
	attempt int
	limit   throttle.Limit
	// The parent that its siblings leave through as well, empty without one.
	parent      string
	parentLimit throttle.Limit
	slot        time.Time
	deadline    time.Time // when its run must be over; zero for none
	booked      time.Time // instant that its parent's bucket has for it; zero until it is asked
	// departed is when the meter let it go.
	departed time.Time
}

// end claims the right to say what becomes of the job: true for the first caller.
func (h *held) end() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := !h.ended
	h.ended = true
	return first
}

// move marks that Redis is about to be told something about the job.
func (h *held) move() throttle.Hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.moving = true
	h.moves++
	return h.hold
}

func (h *held) moved(run int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.moving = false
	h.hold.Run = run
}

// resting returns the hold for an extension of the lease, and how many moves it
// has seen; ok is false while a move is on its way, which renews the lease itself.
func (h *held) resting() (hold throttle.Hold, moves int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hold, h.moves, !h.moving
}

// lose marks a job that Redis no longer counts as ours, unless it has moved since.
func (h *held) lose(moves int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.moving || h.moves != moves || h.lost {
		return
	}
	h.lost = true
	if h.cancel != nil {
		h.cancel(errLost)
	}
}

func (h *held) isLost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// setCancel says how to end the run early. A job that was lost before its run began
// ends at once.
func (h *held) setCancel(cancel context.CancelCauseFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cancel = cancel
	if h.lost {
		cancel(errLost)
	}
}
