package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weirq/weir/throttle"
)

// ErrRefused is wrapped by the error of a handler whose call the other side did not take, for a limit of its
// own. The job goes back to its place in the line and no attempt is counted, unless the policy of its key
// does not listen, or the job has been refused for a day: then it is an attempt that failed.
var ErrRefused = errors.New("the other side is over its limit")

// ErrPark is wrapped by the error of a handler that did not try: the job goes back to its place in the line, no attempt is
// counted, and nothing is said of its key. Have something hold the key, or the job is back at its next slot.
var ErrPark = errors.New("the job was not tried")

// Feedback is what an attempt says about its key, whatever becomes of the job.
type Feedback struct {
	Fared throttle.Fared // how the call went
	// Rest is how long the other side wants no calls of the key, at most throttle.MaxRest; 0 means that it did
	// not say. A refused call that did not say rests the key for a second, or the time in which one cost unit leaks if
	// that is longer.
	Rest time.Duration
}

type feedbackKey struct{}

// told is what a handler told of its attempt.
type told struct {
	mu       sync.Mutex
	feedback Feedback
}

func (t *told) get() Feedback {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.feedback
}

func (h *held) withFeedback(ctx context.Context) context.Context {
	return context.WithValue(ctx, feedbackKey{}, &h.told)
}

// Tell says how the call of an attempt fared, and how long its key should rest; see [throttle.Policy] for
// what becomes of it. The last call counts. ctx is the handler's context or one made from it; for any other the error is
// [ErrNoJob].
func Tell(ctx context.Context, f Feedback) error {
	t, ok := ctx.Value(feedbackKey{}).(*told)
	if !ok {
		return ErrNoJob
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.feedback = f
	return nil
}

// leastRest is how long a key rests when a call was refused and the other side did not say how long.
const leastRest = time.Second

// feedback is what goes with the end of a run.
func (h *held) feedback(v verdict) Feedback {
	f := h.told.get()
	if v.outcome == Refused {
		f.Fared = throttle.OverLimit
		if f.Rest <= 0 {
			f.Rest = max(leastRest, h.limit.Interval())
		}
		f.Rest = max(f.Rest, time.Millisecond)
	}
	return f
}
