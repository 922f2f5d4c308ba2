// Command throttled is the daemon: it releases jobs at the pace of their keys and
// makes the HTTP calls.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // policies name time zones, and a small container has none

	"github.com/redis/go-redis/v9"
)

// silent takes what go-redis says on its own: failed calls are logged by whoever
// made them.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func main() {
	redis.SetLogger(silent{})
	signals := make(chan os.Signal, 2) // the first to drain, the second to end at once
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(run(context.Background(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr, signals))
}
