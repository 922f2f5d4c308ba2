package httpjob

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/worker"
)

// answers collects what a handler hands out.
func answers() (Config, chan Answer) {
	all := make(chan Answer, 100)
	return Config{AllowNetworks: here, OnAnswer: func(_ context.Context, _ worker.Info, a Answer) { all <- a }}, all
}

func TestOnAnswer(t *testing.T) {
	c, all := answers()
	h, base, _ := serveWith(t, c, func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range map[string]string{
			"Retry-After": "7", "X-RateLimit-Remaining": "3", "X-Rate-Limit-Reset": "1", "RateLimit": `"a";r=1`, "RateLimit-Policy": `"a";q=1`,
			"Content-Type": "text/x", "X-Request-Id": "r1", "Location": "https://u:SECRET@example.com/a/b?token=SECRET#SECRET",
			"Set-Cookie": "SECRET", "X-Other": "SECRET",
		} {
			w.Header().Set(name, value)
		}
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "what went wrong")
	})
	require.Error(t, process(t.Context(), t, h, Request{URL: base}))
	a := <-all
	require.Equal(t, 500, a.Status)
	require.Equal(t, "what went wrong", string(a.Body))
	require.True(t, a.Whole)
	require.Equal(t, http.Header{
		"Retry-After": {"7"}, "X-Ratelimit-Remaining": {"3"}, "X-Rate-Limit-Reset": {"1"}, "Ratelimit": {`"a";r=1`},
		"Ratelimit-Policy": {`"a";q=1`}, "Content-Type": {"text/x"}, "X-Request-Id": {"r1"}, "Location": {"https://example.com/a/b"},
	}, a.Header)
	require.Positive(t, a.Timing.Connect)
	require.Positive(t, a.Timing.FirstByte)
	require.GreaterOrEqual(t, a.Timing.Total, a.Timing.FirstByte)

	require.Error(t, process(t.Context(), t, h, Request{URL: base}))
	again := (<-all).Timing
	require.Zero(t, again.Connect+again.DNS+again.TLS, "the connection was kept")
}

func TestOnAnswerKnowsTheJob(t *testing.T) {
	jobs := make(chan worker.Info, 1)
	c := Config{AllowNetworks: here, OnAnswer: func(_ context.Context, job worker.Info, _ Answer) { jobs <- job }}
	h, base, _ := serveWith(t, c, func(http.ResponseWriter, *http.Request) {})
	q := startWorker(t, h)
	j, err := Request{URL: base}.Job("k")
	require.NoError(t, err)
	j.ID = "one"
	_, err = q.Enqueue(t.Context(), j)
	require.NoError(t, err)
	job := <-jobs
	require.Equal(t, "one", job.ID)
	require.Equal(t, 1, job.Attempt)
}

func TestOnAnswerIsToldTheLast(t *testing.T) {
	c, all := answers()
	h, base, _ := serveWith(t, c, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/end", http.StatusTemporaryRedirect)
		}
	})
	require.NoError(t, process(t.Context(), t, h, Request{URL: base, Redirects: 1}))
	require.Equal(t, 200, (<-all).Status)
	require.Empty(t, all)
}

func TestAnswersAreKeptToABound(t *testing.T) {
	for _, c := range []struct {
		name        string
		sent, kept  int
		whole, hang bool
	}{
		{"none", 0, 0, true, false},
		{"the bound", MaxAnswerBody, MaxAnswerBody, true, false},
		{"a byte more", MaxAnswerBody + 1, MaxAnswerBody, false, false},
		{"much more", 10 * MaxAnswerBody, MaxAnswerBody, false, false},
		{"a beginning", 10, 10, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, all := answers()
			h, base, _ := serveWith(t, config, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = w.Write(make([]byte, c.sent))
				if c.hang {
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				}
			})
			require.NoError(t, process(t.Context(), t, h, Request{URL: base}))
			a := <-all
			require.Len(t, a.Body, c.kept)
			require.Equal(t, c.whole, a.Whole)
			require.Less(t, a.Timing.Total, 5*answerTime)
		})
	}
}

// secureServer serves HTTP/2 with a certificate that the configuration trusts.
func secureServer(t *testing.T, answer http.HandlerFunc) (base string, trusting *tls.Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(answer)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshakes it sees fail
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.URL, &tls.Config{RootCAs: roots}
}

// Answers without an end, from as many places at once, are not held in memory.
func TestEndlessAnswersInParallel(t *testing.T) {
	const calls, most = 50, 20 << 20
	endless := func(w http.ResponseWriter, r *http.Request) {
		chunk := bytes.Repeat([]byte("x"), 32<<10)
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	secure, trusting := secureServer(t, endless)
	_, plain, _ := serve(t, endless)
	for name, base := range map[string]string{"HTTP/1.1": plain, "HTTP/2": secure} {
		t.Run(name, func(t *testing.T) {
			held := make(chan Answer, calls)
			h := NewHandler(Config{AllowNetworks: here, TLS: trusting, OnAnswer: func(_ context.Context, _ worker.Info, a Answer) { held <- a }})
			defer h.CloseIdleConnections()
			before, peak := heap(), uint64(0)
			stop, watched := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(watched)
				ticker := time.NewTicker(10 * time.Millisecond)
				defer ticker.Stop()
				for {
					peak = max(peak, heap())
					select {
					case <-stop:
						return
					case <-ticker.C:
					}
				}
			}()
			var all sync.WaitGroup
			for range calls {
				all.Go(func() { _ = h.Call(t.Context(), Request{URL: base}) })
			}
			all.Wait()
			close(stop)
			<-watched
			require.Len(t, held, calls)
			t.Logf("%d KiB above what was there", (int64(peak)-int64(before))/1024)
			require.Less(t, int64(peak)-int64(before), int64(most))
		})
	}
}

// heap is what lives on it.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
