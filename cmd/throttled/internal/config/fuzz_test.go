package config

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/embedded"
	"github.com/weirq/weir/worker"
	"github.com/weirq/weir/worker/httpjob"
)

// Whatever the file holds, it is either refused or fit for the parts that are made
// from it.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"", "redis: x\nshards: 4\n", "policies:\n  - key: \"*\"\n    rate: 10/s\n    burst: 2\n    max_in_flight: 3\n",
		"policies: [{key: 'a*', rate: 9/s, quotas: [{limit: 1, per: 24h, window: fixed, zone: Europe/Berlin}], hours: {zone: UTC, open: [\"mon 09:00-18:00\"]}, ramp: {from: 10%, over: 5m}}]",
		"policies:\n- {key: a, rate: 1/s, parent: b, weight: 2, minimum: 1/m}\n- {key: b, rate: 2/s, parent: a}\n",
		"policies: [{key: a, rate: 1/s, ordered: true, ageing: 1s, job_ttl: 1h, max_waiting: 5, overflow: drop_newest, history: 9, keep_done: 1h}]",
		"worker: {concurrency: 1, lease: 1s, timeout: 1s, shutdown_timeout: 1s, pools: {a: 1}, retry: {base: 1s, cap: 2s, max_attempts: 3}}",
		"max_waiting: 0\ndead_letters: {max: 1, age: 1m}", "max_waiting: -1", "http:\n  listen: 127.0.0.1:0\n  allow_networks: [10.0.0.0/8, '::1']\n  proxy: environment\n", "policies: [{key: a, rate: .nan, burst: .inf}]", "a: &x [*x]", "? [a]\n: 1", "<<: {a: 1}",
		"redis: |\n  x\n", "!!map {a: !!str b}", "%YAML 1.2\n---\na\n...\n---\nb", "a: 'x", "\ufeffshards: 010\r\n", "{a: {b: [{}]}}",
	} {
		f.Add([]byte(seed))
	}
	client, queue := newQueue(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Read("f", data)
		if err != nil {
			var e *Error
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Problems)
			for _, p := range e.Problems {
				require.Positive(t, p.Line)
				require.Positive(t, p.Column)
				require.NotEmpty(t, p.Text)
			}
			return
		}
		_, err = worker.NewServer(client, queue, c.Worker.Server())
		require.NoError(t, err)
		httpjob.NewHandler(c.HTTP.Handler()).CloseIdleConnections()
		require.NoError(t, throttle.ValidatePolicies(c.Policies))
		_, err = throttle.NewScheduler(queue, worker.NewDispatcher(client), throttle.SchedulerConfig{DeadLetters: c.DeadLetters})
		require.NoError(t, err)
	})
}

func newQueue(tb testing.TB) (redis.UniversalClient, *throttle.Queue) {
	tb.Helper()
	server, err := embedded.Start()
	require.NoError(tb, err)
	tb.Cleanup(server.Close)
	client, err := throttle.Open(server.URL())
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = client.Close() })
	queue, err := throttle.NewQueue(tb.Context(), client, throttle.QueueConfig{})
	require.NoError(tb, err)
	return client, queue
}
