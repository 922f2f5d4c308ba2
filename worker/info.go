package worker

import (
	"context"

	"github.com/weirq/weir/throttle"
)

// Info tells a handler about the job it runs.
type Info struct {
	Key         string
	ID          string
	Attempt     int // counted from 1
	MaxAttempts int
	Cost        int64
}

type infoKey struct{}

// JobFrom returns the job that ctx, a handler's context, belongs to. The functions
// of asynq that read a task's id or retry count from a context find nothing there:
// what asynq carries is the parcel.
func JobFrom(ctx context.Context) (Info, bool) {
	info, ok := ctx.Value(infoKey{}).(Info)
	return info, ok
}

func withInfo(ctx context.Context, job throttle.Job, attempt, most int) context.Context {
	return context.WithValue(ctx, infoKey{}, Info{
		Key: job.Key, ID: job.ID, Attempt: attempt, MaxAttempts: most, Cost: job.Cost,
	})
}
