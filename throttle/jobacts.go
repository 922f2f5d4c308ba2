package throttle

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirq/weir/throttle/internal/script"
)

// Cancel ends a job and tells in which state it was. One that waits, is delayed or is
// on its way to a worker is gone. A call cannot be taken back: a job that is Running
// goes on to the end of this attempt, which is its last. The error is [ErrNoJob] if
// there is none.
func (q *Queue) Cancel(ctx context.Context, key, id string) (state string, err error) {
	return q.act(ctx, script.Cancel, 0, key, id)
}

// MoveToFront has a waiting job leave next; one that is delayed does once its delay is
// over.
func (q *Queue) MoveToFront(ctx context.Context, key, id string) error {
	return q.actWaiting(ctx, script.ToFront, 0, key, id)
}

// SetPriority changes the priority of a job that waits or is delayed, and its place in
// the line with it: see Job.Priority.
func (q *Queue) SetPriority(ctx context.Context, key, id string, priority int) error {
	if priority < 0 || priority > MaxPriority {
		return invalid("priority", priority, "0 to %d", MaxPriority)
	}
	return q.actWaiting(ctx, script.SetPriority, priority, key, id)
}

// ReleaseNow has a job leave at once that waits or is delayed, whatever its key's
// limit, quotas, holds and order say: the one way past them, for people, and written to
// the audit trail. It is charged for like every other job, so those behind it make up for
// it.
func (q *Queue) ReleaseNow(ctx context.Context, key, id string) error {
	return q.actWaiting(ctx, script.ReleaseNow, 0, key, id)
}

// ErrNotWaiting is returned when a job that should wait is on its way to a worker or
// runs already.
var ErrNotWaiting = errors.New("the job does not wait any more")

func (q *Queue) actWaiting(ctx context.Context, what string, priority int, key, id string) error {
	state, err := q.act(ctx, what, priority, key, id)
	if err == nil && state != Waiting && state != Delayed {
		return fmt.Errorf("%s: %w: it is %s", doing(what, key, id), ErrNotWaiting, state)
	}
	return err
}

func (q *Queue) act(ctx context.Context, what string, priority int, key, id string) (state string, err error) {
	if err := ValidateKey(key); err != nil {
		return "", err
	}
	if err := validateToken("id", id); err != nil {
		return "", err
	}
	acting := script.Acting{Lead: DefaultLead.Microseconds(), What: what, Who: q.who, Priority: priority}
	job := []script.Ref{{Key: key, ID: id}}
	err = q.store.seek(ctx, key, func(shard int, moving bool) *script.Call {
		acting.Moving = moving
		return q.store.scripts.Act(shard, acting, job)
	}, func(c *script.Call) (home int, found bool) {
		homes, states := c.Acted()
		state = states[0]
		return homes[0], state != ""
	})
	if err == nil && state == "" {
		err = ErrNoJob
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", doing(what, key, id), err)
	}
	return state, nil
}

// doing is what is done to a job, to begin an error with.
func doing(what, key, id string) string {
	job := fmt.Sprintf("job %q of key %q", id, key)
	switch what {
	case script.ToFront:
		return "move " + job + " to the front"
	case script.SetPriority:
		return "change the priority of " + job
	}
	return what + " " + job
}
