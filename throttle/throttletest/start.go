package throttletest

import (
	"context"
	"io"
	"testing"
)

// StartRedis is [LaunchRedis] for a test: in a directory of the test, closed
// when the test ends. It fails the test if the server does not start.
func StartRedis(tb testing.TB, args ...string) *Redis {
	tb.Helper()
	return start(tb, func(ctx context.Context, dir string) (*Redis, error) { return LaunchRedis(ctx, dir, args...) })
}

// StartCluster is [LaunchCluster] for a test.
func StartCluster(tb testing.TB) *Cluster {
	tb.Helper()
	return start(tb, LaunchCluster)
}

// StartSentinel is [LaunchSentinel] for a test.
func StartSentinel(tb testing.TB) *Sentinel {
	tb.Helper()
	return start(tb, LaunchSentinel)
}

func start[S io.Closer](tb testing.TB, launch func(context.Context, string) (S, error)) S {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	s, err := launch(ctx, tb.TempDir())
	if err != nil {
		tb.Fatalf("start the Redis that this test needs: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close the Redis of this test: %v", err)
		}
	})
	return s
}
