package main

import (
	"io"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// actAsDaemon makes this test program throttled itself, for the tests that end,
// stop and kill processes.
const actAsDaemon = "THROTTLED_ACT_AS_DAEMON"

func TestMain(m *testing.M) {
	if os.Getenv(actAsDaemon) == "" {
		redis.SetLogger(silent{})
		goleak.VerifyTestMain(m)
		return
	}
	go func() { // not to outlive the test, whose end closes the pipe
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(99)
	}()
	main()
}
