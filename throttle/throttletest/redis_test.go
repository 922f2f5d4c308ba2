package throttletest_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle/throttletest"
)

// down polls until nobody listens at addr any more.
func down(t *testing.T, addr string) {
	t.Helper()
	require.Eventually(t, func() bool {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, 10*time.Second, 5*ms)
}

func TestRedisAnswersAtItsURL(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	o, err := redis.ParseURL(r.URL())
	require.NoError(t, err)
	require.Equal(t, r.Addr(), o.Addr)

	c := redis.NewClient(o)
	defer c.Close()
	require.NoError(t, c.Set(t.Context(), "k", "v", 0).Err())
	require.Equal(t, "v", r.Client().Get(t.Context(), "k").Val())
	require.FileExists(t, filepath.Join(r.Dir(), "redis.log"))
}

func TestRedisEndsWithItsTest(t *testing.T) {
	t.Parallel()
	var r *throttletest.Redis
	t.Run("a test with a server", func(t *testing.T) {
		r = throttletest.StartRedis(t)
		require.NotZero(t, r.Pid())
	})
	down(t, r.Addr())
	require.Zero(t, r.Pid())
	require.NoDirExists(t, r.Dir())
	require.ErrorIs(t, r.Client().Ping(context.Background()).Err(), redis.ErrClosed)
	require.ErrorContains(t, r.Restart(), "it was closed")
}

func TestRedisForgetsOrKeepsAsItIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		end  func(*throttletest.Redis) error
		keys int64
	}{
		"keeps nothing":                      {nil, (*throttletest.Redis).Stop, 0},
		"append-only file":                   {[]string{"--appendonly", "yes"}, (*throttletest.Redis).Stop, 1},
		"append-only file written each time": {[]string{"--appendonly", "yes", "--appendfsync", "always"}, (*throttletest.Redis).Kill, 1},
		"snapshot":                           {[]string{"--save", "3600 1"}, (*throttletest.Redis).Stop, 1},
		"snapshot lost in a crash":           {[]string{"--save", "3600 1"}, (*throttletest.Redis).Kill, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := throttletest.StartRedis(t, c.args...)
			addr, pid := r.Addr(), r.Pid()
			require.NoError(t, r.Client().Set(t.Context(), "k", "v", 0).Err())

			require.NoError(t, c.end(r))
			require.Zero(t, r.Pid())
			require.NoError(t, c.end(r), "it is down already")
			down(t, addr)

			require.NoError(t, r.Restart())
			require.Equal(t, addr, r.Addr())
			require.NotEqual(t, pid, r.Pid())
			require.Equal(t, c.keys, r.Client().Exists(t.Context(), "k").Val())
		})
	}
}

func TestRedisRestartsWhileItRuns(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	errs := make([]error, 4)
	var restarts sync.WaitGroup
	for i := range errs {
		restarts.Go(func() { errs[i] = r.Restart() })
	}
	restarts.Wait()
	require.NoError(t, errors.Join(errs...))
	require.NoError(t, r.Client().Ping(t.Context()).Err())
}

func TestRestartWaitsForAPortThatIsTaken(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	require.NoError(t, r.Stop())
	squatter, err := net.Listen("tcp", r.Addr())
	require.NoError(t, err)
	defer squatter.Close()

	restarted := make(chan error, 1)
	go func() { restarted <- r.Restart() }()
	require.Eventually(t, func() bool {
		log, err := os.ReadFile(filepath.Join(r.Dir(), "redis.log"))
		return err == nil && strings.Contains(string(log), "in use")
	}, patience, 5*ms)
	require.NoError(t, squatter.Close())
	require.NoError(t, <-restarted)
	require.NoError(t, r.Client().Ping(t.Context()).Err())
}

func TestPausedRedisAnswersAfterResume(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	require.NoError(t, r.Pause())

	ctx, cancel := context.WithTimeout(t.Context(), 200*ms)
	defer cancel()
	start := time.Now()
	require.ErrorIs(t, r.Client().Ping(ctx).Err(), context.DeadlineExceeded)
	require.Less(t, time.Since(start), time.Second, "the client's deadline reaches a command under way")

	require.NoError(t, r.Resume())
	require.NoError(t, r.Client().Ping(t.Context()).Err())

	require.NoError(t, r.Pause())
	require.NoError(t, r.Stop(), "a paused server can be stopped")
	require.ErrorContains(t, r.Pause(), "pause redis-server at "+r.Addr()+": it is not running")
	require.ErrorContains(t, r.Resume(), "it is not running")
}

func TestRedisWithAPassword(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t, "--requirepass", "p@ss/word")
	o, err := redis.ParseURL(r.URL())
	require.NoError(t, err)
	require.Equal(t, "p@ss/word", o.Password)
	require.NoError(t, r.Client().Ping(t.Context()).Err())
}

func TestLaunchedRedisTakesItsTemporaryDirectoryAlong(t *testing.T) {
	t.Parallel()
	r, err := throttletest.LaunchRedis(t.Context(), "")
	require.NoError(t, err)
	require.DirExists(t, r.Dir())
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	require.NoDirExists(t, r.Dir())
	down(t, r.Addr())
}

func TestLaunchShowsWhyTheServerEnded(t *testing.T) {
	t.Parallel()
	_, err := throttletest.LaunchRedis(t.Context(), t.TempDir(), "--no-such-option", "1")
	require.ErrorContains(t, err, "redis-server ended")
	require.ErrorContains(t, err, "no-such-option")

	_, err = throttletest.LaunchRedis(t.Context(), filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestLaunchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(net.ErrClosed)
	_, err := throttletest.LaunchRedis(ctx, "")
	require.ErrorIs(t, err, net.ErrClosed)
}

// Not parallel: the PATH belongs to the process.
func TestLaunchTellsHowToInstallAServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := throttletest.LaunchRedis(t.Context(), "")
	require.ErrorIs(t, err, throttletest.ErrNoRedisServer)
	require.ErrorContains(t, err, "apt-get install redis-server")
	require.ErrorContains(t, err, "make test")
	_, err = throttletest.LaunchCluster(t.Context(), "")
	require.ErrorIs(t, err, throttletest.ErrNoRedisServer)
	_, err = throttletest.LaunchSentinel(t.Context(), "")
	require.ErrorIs(t, err, throttletest.ErrNoRedisServer)
}
