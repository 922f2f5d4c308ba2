// Command enqueue puts outbound HTTP calls into the line of their key: one job
// from flags, or many from a file with one JSON object a line.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // policies name time zones, and a small container has none

	"github.com/redis/go-redis/v9"
)

// silent takes what go-redis says on its own: run reports the same once.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func main() {
	redis.SetLogger(silent{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
