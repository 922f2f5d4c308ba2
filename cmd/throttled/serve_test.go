package main

import (
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker/httpjob"
)

// Nothing but the program: the URL it prints is all that a producer needs.
func TestEmbeddedRedis(t *testing.T) {
	s := serveHere(t)
	url := strings.TrimSpace(s.stdout.String())
	require.Regexp(t, `^redis://127\.0\.0\.1:\d+$`, url)
	require.Contains(t, s.stderr.String(), "KEEPS NOTHING")
	require.Equal(t, url, s.stderr.attribute("started", "redis"))
	require.Equal(t, "scheduler,worker", s.stderr.attribute("started", "parts"))
	require.Equal(t, strconv.Itoa(throttle.DefaultShards), s.stderr.attribute("started", "shards"))
	require.Equal(t, "0", s.stderr.attribute("started", "policies"))

	recv := newReceiver(t, nil)
	_, err := queueAt(t, url).Enqueue(t.Context(), recv.job(t, "k", "one"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return recv.timesOf("one") == 1 }, patience, time.Millisecond)

	require.Eventually(t, func() bool {
		status, body := get(t, s.url()+"/metrics")
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, "go_goroutines ")
		return strings.Contains(body, `weir_attempts_total{outcome="done"} 1`)
	}, patience, 5*time.Millisecond)
	for path, want := range map[string]string{"/healthz": "alive\n", "/readyz": "ready\n"} {
		status, body := get(t, s.url()+path)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, want, body)
	}
	status, _ := get(t, s.url()+"/")
	require.Equal(t, http.StatusNotFound, status)
}

// The parts may run apart, also on an embedded Redis: the worker may be one of the
// user's own.
func TestPartsApart(t *testing.T) {
	scheduler := serveHere(t, "--scheduler-only")
	require.Equal(t, "scheduler", scheduler.stderr.attribute("started", "parts"))
	url := strings.TrimSpace(scheduler.stdout.String())
	q, recv := queueAt(t, url), newReceiver(t, nil)
	_, err := q.Enqueue(t.Context(), recv.job(t, "k", "one"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := q.Job(t.Context(), "k", "one")
		require.NoError(t, err)
		return info.State == throttle.Released
	}, patience, time.Millisecond)
	require.Zero(t, recv.seen(), "there is no worker")

	worker := serveHere(t, "--worker-only", "--redis", url)
	require.Equal(t, "worker", worker.stderr.attribute("started", "parts"))
	require.Empty(t, worker.stdout.String())
	require.Eventually(t, func() bool { return recv.timesOf("one") == 1 }, patience, time.Millisecond)
}

func TestPoliciesAreStoredByTheScheduler(t *testing.T) {
	r := throttletest.StartRedis(t)
	q, err := throttle.NewQueue(t.Context(), r.Client(), throttle.QueueConfig{})
	require.NoError(t, err)
	for _, step := range []struct {
		name, file, part, policies string
		want                       string // limit of the key
	}{
		{"stored", "policies: [{key: k, rate: 7/m, burst: 3}]", "--scheduler-only", "1", "7/m burst 3"},
		{"not by a worker", "policies: [{key: k, rate: 8/m}]", "--worker-only", "as stored", "7/m burst 3"},
		{"kept without the field", "shards: 16", "--scheduler-only", "as stored", "7/m burst 3"},
		{"replaced", "policies: [{key: '*', rate: 9/m}]", "--scheduler-only", "1", "9/m burst 1"},
		{"emptied", "policies: []", "--scheduler-only", "0", throttle.DefaultPolicy.Limit.String()},
	} {
		t.Run(step.name, func(t *testing.T) {
			s := serveHere(t, "--redis", r.URL(), "--config", configFile(t, step.file), step.part)
			require.Equal(t, step.policies, s.stderr.attribute("started", "policies"))
			info, err := q.Key(t.Context(), "k")
			require.NoError(t, err)
			require.Equal(t, step.want, info.Policy.Limit.String())
		})
	}
}

func TestTheBoundIsStoredByTheScheduler(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := queueAt(t, r.URL())
	for _, step := range []struct {
		file, part, told string
		want             int64
	}{
		{"max_waiting: 7", "--scheduler-only", "7", 7},
		{"max_waiting: 8", "--worker-only", "as stored", 7},
		{"shards: 16", "--scheduler-only", "as stored", 7},
		{"max_waiting: 0", "--scheduler-only", "none", 0},
	} {
		s := serveHere(t, "--redis", r.URL(), "--config", configFile(t, step.file), step.part)
		require.Equal(t, step.told, s.stderr.attribute("started", "max_waiting"))
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, step.want, stats.MaxWaiting, step.file)
	}
}

// The scheduler removes dead letters above what the file allows, the oldest first.
func TestDeadLettersAreBounded(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := queueAt(t, r.URL())
	serveHere(t, "--redis", r.URL(), "--config", configFile(t, "dead_letters: {max: 2}"))
	for _, id := range []string{"a", "b", "c", "d"} {
		die(t, q, "k", id)
	}
	require.Eventually(t, func() bool {
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		return stats.Totals.Dead == 4 && stats.Dead == 2 && stats.Totals.Evicted == 2
	}, patience, 50*time.Millisecond)
}

// Without a word about networks, calls stay away from this machine, and a job for it is
// given up at once.
func TestPrivateAddressesAreNotCalled(t *testing.T) {
	s := begin(nil, "serve", "--listen", "none", "--log-format", "json")
	t.Cleanup(func() {
		s.signals <- syscall.SIGTERM
		require.Zero(t, s.exit(t, patience))
	})
	require.Eventually(t, func() bool { return s.stderr.attribute("started", "redis") != "" }, patience, time.Millisecond)
	q, recv := queueAt(t, s.stderr.attribute("started", "redis")), newReceiver(t, nil)
	_, err := q.Enqueue(t.Context(), recv.job(t, "k", "one"))
	require.NoError(t, err)
	var job throttle.JobInfo
	require.Eventually(t, func() bool {
		job, err = q.Job(t.Context(), "k", "one")
		require.NoError(t, err)
		return job.State == throttle.Dead
	}, patience, time.Millisecond)
	require.Equal(t, 1, job.Attempts)
	require.Contains(t, job.Reason, "127.0.0.1 is in 127.0.0.0/8, which calls may not reach")
	require.Contains(t, job.Reason, "--allow-network 127.0.0.0/8")
	require.Zero(t, recv.seen())
}

// die enqueues a job whose only attempt fails.
func die(t *testing.T, q *throttle.Queue, key, id string) {
	t.Helper()
	job, err := httpjob.Request{URL: "http://127.0.0.1:1/S3CRET", Body: []byte("body of " + id)}.Job(key)
	require.NoError(t, err)
	job.ID, job.MaxAttempts = id, 1
	_, err = q.Enqueue(t.Context(), job)
	require.NoError(t, err)
}

// A Redis that was set up with another number of shards than usual needs no setting
// for it.
func TestShardsAsStored(t *testing.T) {
	r := throttletest.StartRedis(t)
	q, err := throttle.NewQueue(t.Context(), r.Client(), throttle.QueueConfig{Shards: 4})
	require.NoError(t, err)
	s := serveHere(t, "--redis", r.URL())
	require.Equal(t, "as stored", s.stderr.attribute("started", "shards"))
	recv := newReceiver(t, nil)
	_, err = q.Enqueue(t.Context(), recv.job(t, "k", "one"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return recv.timesOf("one") == 1 }, patience, time.Millisecond)

	s = serveHere(t, "--redis", r.URL(), "--config", configFile(t, "shards: 4"))
	require.Equal(t, "4", s.stderr.attribute("started", "shards"))
}

func TestListenNowhere(t *testing.T) {
	for _, nowhere := range []string{"", "none"} {
		s := serveHere(t, "--listen", nowhere)
		require.Equal(t, "nowhere", s.stderr.attribute("started", "listen"))
	}
}

// A start that fails says why, in a form that can be acted on, and stores nothing.
func TestFailedStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	port := taken.Addr().String()
	stored := throttletest.StartRedis(t)
	_, err = throttle.NewQueue(t.Context(), stored.Client(), throttle.QueueConfig{Shards: 4})
	require.NoError(t, err)
	evicting := throttletest.StartRedis(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	locked := throttletest.StartRedis(t, "--requirepass", "right")
	stalled := throttletest.StartRedis(t)
	require.NoError(t, stalled.Pause())

	const file = "policies: [{key: k, rate: 1/s}]\n"
	for _, c := range []struct {
		name string
		file string
		env  map[string]string
		args []string
		code int
		want []string
	}{
		{
			name: "Redis away", args: []string{"--redis", "redis://user:S3CRET@127.0.0.1:1/2?read_timeout=1s"},
			code: exitRedis, want: []string{"--redis: cannot use redis://127.0.0.1:1/2: ", "connection refused; start one, or leave --redis out for one inside of the process"},
		},
		{
			name: "Redis away from a worker", args: []string{"--worker-only", "--redis", "redis://127.0.0.1:1"},
			code: exitRedis, want: []string{"connection refused; start one, or give the URL of another"},
		},
		{
			name: "Redis away in the environment", env: map[string]string{"WEIR_REDIS": "redis://:S3CRET@127.0.0.1:1"},
			code: exitRedis, want: []string{"WEIR_REDIS: cannot use redis://127.0.0.1:1: ", "connection refused; start one, or leave WEIR_REDIS out for one inside"},
		},
		{
			name: "Redis stalled", file: "redis: " + stalled.URL() + "\n" + file,
			code: exitRedis, want: []string{"FILE:1:8: cannot use " + stalled.URL() + ": no answer within 5s"},
		},
		{
			name: "wrong password", args: []string{"--redis", "redis://:S3CRET@" + locked.Addr()},
			code: exitRedis, want: []string{"cannot use redis://" + locked.Addr() + ": ", "WRONGPASS"},
		},
		{
			name: "no Redis URL", file: "redis: http://:S3CRET@h\n" + file,
			code: exitInvalid, want: []string{`FILE:1:8: this is not a Redis URL: want a URL that starts with redis://`},
		},
		{
			name: "another number of shards", file: "shards: 8\n" + file, args: []string{"--redis", stored.URL()},
			code: exitInvalid, want: []string{"FILE:1:9: shards 8 is not allowed: want 4, the number this Redis was set up with"},
		},
		{
			name: "evicting Redis", args: []string{"--redis", evicting.URL()},
			code: exitInvalid, want: []string{`redis maxmemory-policy "allkeys-lru" is not allowed: want noeviction`},
		},
		{
			name: "port taken", file: file, args: []string{"--listen", port},
			code: exitFailed, want: []string{"--listen: cannot listen on " + port, "address already in use", "give another address by --listen, or none"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"serve", "--listen", "127.0.0.1:0"}, c.args...)
			name := ""
			if c.file != "" {
				name = configFile(t, c.file)
				args = append(args, "--config", name)
			}
			s := begin(c.env, args...)
			require.Equal(t, c.code, s.exit(t, 8*time.Second), "%s", &s.stderr)
			for _, want := range c.want {
				require.Contains(t, s.stderr.String(), strings.ReplaceAll(want, "FILE", name))
			}
			require.NotContains(t, s.stderr.String(), "S3CRET")
			require.NotContains(t, s.stderr.String(), "--help", "the command line was fine")
		})
	}
	keys, err := stored.Client().Keys(t.Context(), "*policies*").Result()
	require.NoError(t, err)
	require.Empty(t, keys)
}

func TestSignalBeforeTheStartIsOver(t *testing.T) {
	stalled := throttletest.StartRedis(t)
	require.NoError(t, stalled.Pause())
	s := begin(nil, "serve", "--listen", "none", "--redis", stalled.URL())
	s.signals <- syscall.SIGTERM
	require.Zero(t, s.exit(t, 2*time.Second))
}

// timeout(1) signals a process twice, which must not cost it the drain.
func TestEchoOfASignalIsNotASecondOne(t *testing.T) {
	s := begin(nil, "serve", "--listen", "none", "--log-format", "json")
	require.Eventually(t, func() bool { return s.stderr.attribute("started", "parts") != "" }, patience, time.Millisecond)
	s.signals <- syscall.SIGTERM
	s.signals <- syscall.SIGTERM
	require.Zero(t, s.exit(t, patience))
	require.Contains(t, s.stderr.String(), "stopped")
}
