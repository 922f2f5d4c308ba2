package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/weirq/weir/throttle"
)

// An Outcome is what became of a job that reached a worker.
type Outcome string

// The outcomes. What a handler returns chooses among the first five.
const (
	Done    Outcome = "done"    // nil
	Retry   Outcome = "retry"   // any other error, or a panic
	Dead    Outcome = "dead"    // an error that wraps asynq.SkipRetry, or the last attempt's error
	Dropped Outcome = "dropped" // an error that wraps asynq.RevokeTask
	Refused Outcome = "refused" // an error that wraps ErrRefused: as parked, and the key rests
	Parked  Outcome = "parked"  // an error that wraps ErrPark, or there was no attempt: went back to its place in the line, no attempt counted
	Gone    Outcome = "gone"    // was no longer this worker's: finished, cancelled or given to another
)

var (
	errShutdown = errors.New("the worker is shutting down")
	errLost     = errors.New("the job was given to another worker")
)

// verdict is an outcome with what goes with it.
type verdict struct {
	outcome Outcome
	delay   time.Duration // of a Retry
	reason  string        // of a Retry or a Dead one
	last    bool          // a Refused one has no other attempt left
}

// classify turns the end of an attempt into its outcome: the one place where that
// is decided. cause is why the job's context ended early, nil if it did not.
func (s *Server) classify(job throttle.Job, attempt int, err, cause error) verdict {
	most := s.config.Retry.attempts(job)
	switch {
	case errors.Is(cause, errLost):
		return verdict{outcome: Gone}
	case err == nil:
		return verdict{outcome: Done}
	case errors.Is(cause, errShutdown):
		return verdict{outcome: Parked}
	case errors.Is(err, asynq.RevokeTask):
		return verdict{outcome: Dropped}
	case errors.Is(err, asynq.SkipRetry):
		return verdict{outcome: Dead, reason: err.Error()}
	case errors.Is(err, ErrRefused):
		return verdict{outcome: Refused, delay: s.config.Retry.delay(attempt), reason: err.Error(), last: attempt >= most}
	case errors.Is(err, ErrPark):
		return verdict{outcome: Parked}
	case attempt >= most:
		return verdict{outcome: Dead, reason: fmt.Sprintf("attempt %d of %d failed: %v", attempt, most, err)}
	default:
		return verdict{outcome: Retry, delay: s.config.Retry.delay(attempt), reason: err.Error()}
	}
}

// ending is how a verdict is written to the bucket, with what the run truly cost. A
// job that was dropped cost nothing, unless its handler says otherwise.
func (v verdict) ending(h throttle.Hold, cost *trueCost, f Feedback) throttle.Ending {
	e := throttle.Ending{Hold: h, Delay: v.delay, Reason: v.reason, Fared: f.Fared, Rest: f.Rest}
	e.Cost, e.Settled = cost.get()
	switch v.outcome {
	case Done:
		e.What = throttle.Done
	case Dropped:
		e.What, e.Settled = throttle.Done, true
	case Retry:
		e.What = throttle.Retry
	case Dead:
		e.What = throttle.Dead
	case Refused:
		e.What = throttle.Refused
		if v.last {
			e.What = throttle.RefusedLast
		}
	default: // there was no attempt
		e.What, e.Settled = throttle.Return, false
	}
	return e
}
