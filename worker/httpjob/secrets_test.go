package httpjob

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
)

// A page is written to from many goroutines.
type page struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (p *page) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(line)
}

func (p *page) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.String()
}

// However a call goes wrong, what is secret about it is found in no log, no error, no stored attempt
// and no metric.
func TestSecretsStayWithTheJob(t *testing.T) {
	var logs page
	logger := slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	registry := prometheus.NewRegistry()
	client := throttletest.StartRedis(t).Client()
	q, err := throttle.NewQueue(t.Context(), client, throttle.QueueConfig{Logger: logger})
	require.NoError(t, err)
	require.NoError(t, registry.Register(worker.NewStoredCollector(q)))
	scheduler, err := throttle.NewScheduler(q, worker.NewDispatcher(client), throttle.SchedulerConfig{})
	require.NoError(t, err)
	server, err := worker.NewServer(client, q, worker.Config{Concurrency: 20, Logger: logger, Registerer: registry})
	require.NoError(t, err)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refused := l.Addr().String()
	require.NoError(t, l.Close())
	h, base, _ := serveWith(t, Config{AllowNetworks: here, OnAnswer: func(_ context.Context, _ worker.Info, a Answer) {
		if a.Status == http.StatusOK {
			panic(fmt.Sprintf("answered %s", a.Body))
		}
	}}, func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("X-Case") {
		case "hangs":
			_ = r.Body.Close()
			<-r.Context().Done()
		case "panics":
			_, _ = w.Write([]byte("SEC5"))
		default:
			w.Header().Set("Location", "https://example.com/SEC5?SEC5")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte("SEC5"))
		}
	})
	here := strings.TrimPrefix(base, "http://")
	hosts := map[string]string{"refused": refused, "hangs": here, "fails": here, "blocked": "10.255.0.1", "panics": here}
	mux := asynq.NewServeMux()
	mux.Handle(Type, h)
	ctx, stop := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = scheduler.Run(ctx) })
	parts.Go(func() { _ = server.Run(ctx, mux) })
	t.Cleanup(func() {
		stop()
		parts.Wait()
	})

	for name, host := range hosts {
		j, err := Request{
			URL: "http://u:PASS1@" + host + "/hook/TOK2?token=SEC3", Headers: map[string]string{"Authorization": "Bearer SEC4", "X-Case": name},
			Body: []byte("SEC5"), Timeout: 300 * time.Millisecond,
		}.Job(name)
		require.NoError(t, err)
		j.ID, j.MaxAttempts = "j", 1
		_, err = q.Enqueue(t.Context(), j)
		require.NoError(t, err)
	}
	want := map[string]string{
		"refused": "connection refused", "hangs": "deadline exceeded", "fails": "500 Internal Server Error",
		"blocked": "10.255.0.1 is in 10.0.0.0/8", "panics": "the handler panicked",
	}
	for name := range hosts {
		var job throttle.JobInfo
		require.Eventually(t, func() bool {
			job, err = q.Job(t.Context(), name, "j")
			return err == nil && job.State == throttle.Dead
		}, 20*time.Second, 10*time.Millisecond, name)
		require.Equal(t, 1, job.Attempts)
		require.Contains(t, job.Reason, want[name])
		requireNoSecrets(t, fmt.Sprintf("%s %+v", job.Reason, job.History))
	}
	shown := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(shown, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	metrics := shown.Body
	require.Contains(t, metrics.String(), `weir_attempts_total{outcome="dead"} 5`)
	requireNoSecrets(t, metrics.String())
	require.Contains(t, logs.String(), "attempt")
	requireNoSecrets(t, logs.String())
}

func requireNoSecrets(t *testing.T, in string) {
	t.Helper()
	for _, secret := range []string{"PASS1", "TOK2", "SEC3", "SEC4", "SEC5"} {
		require.NotContains(t, in, secret)
	}
}

// A call over a limit of the other side costs no attempt: it is made again once the key has rested.
func TestRefusedCallsGoBackIntoLine(t *testing.T) {
	arrivals := make(chan time.Time, 10)
	h, base, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		arrivals <- time.Now()
		if len(arrivals) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	q := startWorker(t, h)
	j, err := Request{URL: base}.Job("k")
	require.NoError(t, err)
	j.ID, j.MaxAttempts = "one", 1
	_, err = q.Enqueue(t.Context(), j)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(arrivals) == 2 }, 20*time.Second, 5*time.Millisecond)
	first, second := <-arrivals, <-arrivals
	require.GreaterOrEqual(t, second.Sub(first), time.Second-20*time.Millisecond)
}
