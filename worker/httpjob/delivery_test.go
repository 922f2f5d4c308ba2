package httpjob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
)

// A body arrives with the bytes that it was enqueued with, through everything.
func TestBodiesArriveByteForByte(t *testing.T) {
	bodies := map[string][]byte{
		"binary":              {0x00, 0xff, 0x0a, 0x0d, 0x7b},
		"empty":               {},
		"lone_continuation":   {0x80},
		"line_ends":           []byte("\n\r\n\n"),
		"looks_like_metadata": []byte("{\"type\":\"x\"}\n{}\n"),
		"largest":             bytes.Repeat([]byte("\x00\xff\n{"), throttle.DefaultMaxJobSize/4),
	}
	type arrival struct {
		id, method, note string
		sum              [sha256.Size]byte
	}
	arrivals := make(chan arrival, 2*len(bodies))
	h, base, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		arrivals <- arrival{r.URL.Query().Get("id"), r.Method, r.Header.Get("X-Note"), sha256.Sum256(body)}
	})
	q := startWorker(t, h)

	for id, body := range bodies {
		j, err := Request{Method: "PUT", URL: base + "/?id=" + id, Headers: map[string]string{"X-Note": "é <&>"}, Body: body}.Job("k")
		require.NoError(t, err)
		j.ID = id
		_, err = q.Enqueue(t.Context(), j)
		require.NoError(t, err, id)
	}
	left := time.After(20 * time.Second)
	for range len(bodies) {
		select {
		case got := <-arrivals:
			body, ours := bodies[got.id]
			require.True(t, ours, "each once: %s", got.id)
			delete(bodies, got.id)
			require.Equal(t, arrival{got.id, "PUT", "é <&>", sha256.Sum256(body)}, got)
		case <-left:
			require.Fail(t, "not all arrived", "%d are missing", len(bodies))
		}
	}
}

func TestQueueRefusesALargerBody(t *testing.T) {
	r := throttletest.StartRedis(t)
	q, err := throttle.NewQueue(t.Context(), r.Client(), throttle.QueueConfig{})
	require.NoError(t, err)
	before, err := r.Client().DBSize(t.Context()).Result()
	require.NoError(t, err)

	large, err := Request{URL: "http://example.com", Body: make([]byte, throttle.DefaultMaxJobSize+1)}.Job("k")
	require.NoError(t, err)
	small, err := Request{URL: "http://example.com"}.Job("k")
	require.NoError(t, err)
	_, err = q.Enqueue(t.Context(), large)
	require.EqualError(t, err, "payload 1048577 is not allowed: want at most 1048576 bytes")
	_, err = q.EnqueueMany(t.Context(), []throttle.Job{small, large})
	require.EqualError(t, err, "jobs[1].payload 1048577 is not allowed: want at most 1048576 bytes")

	after, err := r.Client().DBSize(t.Context()).Result()
	require.NoError(t, err)
	require.Equal(t, before, after, "nothing is written")
}

// startWorker runs a scheduler and a worker until the test ends.
func startWorker(t *testing.T, h *Handler) *throttle.Queue {
	t.Helper()
	client := throttletest.StartRedis(t).Client()
	q, err := throttle.NewQueue(t.Context(), client, throttle.QueueConfig{})
	require.NoError(t, err)
	require.NoError(t, q.SetPolicies(t.Context(), []throttle.Policy{
		{Key: "k", Limit: throttle.Limit{Rate: 100, Period: time.Second, Burst: 10}},
	}))
	scheduler, err := throttle.NewScheduler(q, worker.NewDispatcher(client), throttle.SchedulerConfig{})
	require.NoError(t, err)
	server, err := worker.NewServer(client, q, worker.Config{Concurrency: 20})
	require.NoError(t, err)

	ctx, stop := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = scheduler.Run(ctx) })
	parts.Go(func() { _ = server.Run(ctx, h) })
	t.Cleanup(func() {
		stop()
		parts.Wait()
	})
	return q
}
