package limiter

import (
	"context"
	"fmt"

	"github.com/weirq/weir/throttle"
)

// A NeverError refuses a cost that no wait would let pass: it is above the burst, or above the
// limit of a window, of one of the rules. Nothing was charged.
type NeverError struct {
	Cost int64
	Most int64 // that can pass at once
}

func (e *NeverError) Error() string {
	return fmt.Sprintf("cost %d can never pass: want 1 to %d, the most that this limiter lets pass at once", e.Cost, e.Most)
}

// Is makes errors.Is(err, [throttle.ErrInvalid]) true.
func (e *NeverError) Is(target error) bool { return target == throttle.ErrInvalid }

// A LateError refuses to wait: the turn would come after the deadline of the context. Nothing was
// charged. errors.Is takes it for a [context.DeadlineExceeded].
type LateError struct {
	Result Result // RetryAfter is the wait for the turn
}

func (e *LateError) Error() string {
	return fmt.Sprintf("the turn comes in %v, after the deadline", e.Result.RetryAfter)
}

// Is makes errors.Is(err, context.DeadlineExceeded) true.
func (e *LateError) Is(target error) bool { return target == context.DeadlineExceeded }
