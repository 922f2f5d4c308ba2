package worker

import (
	"context"
	"time"
)

// Info tells a handler about the job it runs.
type Info struct {
	Key         string
	ID          string
	Attempt     int // counted from 1
	MaxAttempts int
	Cost        int64     // that it was charged when it departed; see SetCost
	Departed    time.Time // the instant at which it left, at its slot or a little later
}

type infoKey struct{}

// JobFrom returns the job that ctx, a handler's context, belongs to. The functions
// of asynq that read a task's id or retry count from a context find nothing there:
// what asynq carries is the parcel.
func JobFrom(ctx context.Context) (Info, bool) {
	info, ok := ctx.Value(infoKey{}).(Info)
	return info, ok
}

func withInfo(ctx context.Context, h *held, most int) context.Context {
	return context.WithValue(ctx, infoKey{}, Info{
		Key: h.job.Key, ID: h.job.ID, Attempt: h.attempt, MaxAttempts: most, Cost: h.job.Cost,
		Departed: h.departed,
	})
}
