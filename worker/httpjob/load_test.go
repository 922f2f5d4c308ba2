package httpjob

import (
	"bytes"
	"context"
	"flag"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var deliveries = flag.Int64("deliveries", 2000, "how many TestDeliveriesShareConnections makes")

// openFiles counts those of this process; ok is false where the system does not tell.
func openFiles() (n int, ok bool) {
	all, err := os.ReadDir("/proc/self/fd")
	return len(all), err == nil
}

// deliver makes n calls, ten at once, half of which fail with a body.
func deliver(tb testing.TB, n int64) (h *Handler, connections int64) {
	tb.Helper()
	var arrived, started atomic.Int64
	failure := bytes.Repeat([]byte("x"), 2<<10)
	h, base, opened := serve(tb, func(w http.ResponseWriter, _ *http.Request) {
		if arrived.Add(1)%2 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write(failure)
		}
	})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for started.Add(1) <= n {
				_ = h.Call(context.Background(), Request{URL: base, Body: []byte("{}")})
			}
		})
	}
	all.Wait()
	require.Equal(tb, n, arrived.Load())
	return h, opened.Load()
}

func TestDeliveriesShareConnections(t *testing.T) {
	before, counted := openFiles()
	h, connections := deliver(t, *deliveries)
	require.LessOrEqual(t, connections, int64(20))
	h.CloseIdleConnections()
	if counted {
		require.Eventually(t, func() bool { // the server has to notice
			after, _ := openFiles()
			return after <= before+20
		}, 10*time.Second, 5*time.Millisecond)
	}
}

func BenchmarkDeliveries(b *testing.B) {
	_, connections := deliver(b, int64(b.N))
	b.ReportMetric(float64(connections), "connections")
}
