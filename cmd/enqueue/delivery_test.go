package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
	"github.com/weirq/weir/worker/httpjob"
)

// Each line's payload arrives once and byte for byte, through everything.
func TestEnqueuedPayloadsArriveAsTheyStand(t *testing.T) {
	var mu sync.Mutex
	arrived := map[[sha256.Size]byte]int{}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		arrived[sha256.Sum256(body)]++
	}))
	defer receiver.Close()
	r := throttletest.StartRedis(t)
	startWorker(t, r)

	payloads := []string{
		`{"a":1,"b":"é<&>"}`, `{ "z":0, "a" : [1.0, 1e3, -0], "z":1 }`, `"\u003c\/\ud800"`, `12345678901234567890.10`, `null`,
		"{\"separator\":\"\u2028\"}", `{"deep":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
		`"` + strings.Repeat("large ", 20_000) + `"`,
	}
	var file strings.Builder
	for i, p := range payloads {
		fmt.Fprintf(&file, "{\"id\":\"evt_%d\",\"key\":\"key %d\",\"event\":\"x\",\"payload\":%s}\n", i, i%2, p)
	}
	file.WriteString(`{"key":"key 0","body_base64":"AP8KDXuA"}` + "\n")
	bodies := slices.Concat(payloads, []string{"\x00\xff\n\r{\x80"})

	got := command(t.Context(), file.String(), "--redis", r.URL(), "--file", "-", "--url", receiver.URL, "--rate", "100/s", "--burst", "10")
	require.Zero(t, got.code, got.err)
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(arrived) >= len(bodies)
	}, 20*time.Second, 5*time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	for _, body := range bodies {
		require.Equal(t, 1, arrived[sha256.Sum256([]byte(body))], "%.60q", body)
	}
	require.Len(t, arrived, len(bodies))
}

// startWorker runs a scheduler and a worker until the test ends.
func startWorker(t *testing.T, r *throttletest.Redis) {
	t.Helper()
	client, err := throttle.Open(r.URL())
	require.NoError(t, err)
	q, err := throttle.NewQueue(t.Context(), client, throttle.QueueConfig{})
	require.NoError(t, err)
	scheduler, err := throttle.NewScheduler(q, worker.NewDispatcher(client), throttle.SchedulerConfig{})
	require.NoError(t, err)
	server, err := worker.NewServer(client, q, worker.Config{Concurrency: 20})
	require.NoError(t, err)
	calls := httpjob.NewHandler(httpjob.Config{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	mux := asynq.NewServeMux()
	mux.Handle(httpjob.Type, calls)

	ctx, stop := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = scheduler.Run(ctx) })
	parts.Go(func() { _ = server.Run(ctx, mux) })
	t.Cleanup(func() {
		stop()
		parts.Wait()
		calls.CloseIdleConnections()
		_ = client.Close()
	})
}
