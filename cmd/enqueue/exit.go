package main

import (
	"context"
	"errors"

	"github.com/weirq/weir/throttle"
)

// Exit codes. The help text documents them.
const (
	exitDone        = 0
	exitSomeFailed  = 1
	exitInvalid     = 2
	exitRedis       = 3
	exitInterrupted = 130 // 128 + SIGINT, as shells report it
)

// A failure is an error that knows the exit code it ends with.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// exitCode places an error that came from the queue, or from connecting to it.
func exitCode(ctx context.Context, err error) int {
	switch {
	case errors.Is(err, throttle.ErrInvalid):
		return exitInvalid
	case ctx.Err() != nil:
		return exitInterrupted
	}
	return exitRedis
}
