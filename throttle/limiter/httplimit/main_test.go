package httplimit_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weirq/weir/throttle/limiter"
	"github.com/weirq/weir/throttle/limiter/httplimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

// at is a clock that stands still.
func at(unix int64) func() time.Time {
	return func() time.Time { return time.Unix(unix, 0) }
}

// inMemory is a limiter on a store of its own whose clock stands still.
func inMemory(t *testing.T, unix int64, rules ...limiter.Rule) *limiter.Limiter {
	t.Helper()
	return named(t, limiter.NewMemory(limiter.MemoryConfig{Now: at(unix)}), "api", rules...)
}

func named(t *testing.T, store limiter.Store, name string, rules ...limiter.Rule) *limiter.Limiter {
	t.Helper()
	l, err := limiter.New(store, name, rules...)
	require.NoError(t, err)
	return l
}

// middleware fails closed and is silent unless it is told otherwise.
func middleware(t *testing.T, c httplimit.Config) *httplimit.Middleware {
	t.Helper()
	if c.OnError == 0 {
		c.OnError = httplimit.FailClosed
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	m, err := httplimit.New(c)
	require.NoError(t, err)
	return m
}

// hello is what stands behind the middleware.
var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })

// costOf is what a request says in its query: "/?cost=3".
func costOf(r *http.Request) int64 {
	cost, _ := strconv.ParseInt(r.URL.Query().Get("cost"), 10, 64)
	return cost
}

func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// A reply is an answer that has been read.
type reply struct {
	code   int
	header http.Header
	body   string
	took   time.Duration
}

func (r reply) field(name string) string { return r.header.Get(name) }

func get(t *testing.T, s *httptest.Server, path string, fields ...string) reply {
	t.Helper()
	return do(t, s, http.MethodGet, path, fields...)
}

// do sends a request with fields, name and value by turns.
func do(t *testing.T, s *httptest.Server, method, path string, fields ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	require.NoError(t, err)
	for i := 0; i < len(fields); i += 2 {
		req.Header.Add(fields[i], fields[i+1])
	}
	begin := time.Now()
	resp, err := s.Client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return reply{resp.StatusCode, resp.Header, string(body), time.Since(begin)}
}

// count is how many of n requests got a code.
func count(n, code int, request func(i int) reply) int {
	found := 0
	for i := range n {
		if request(i).code == code {
			found++
		}
	}
	return found
}

var rateFields = []string{
	"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit-Policy", "RateLimit",
}

func hasRateFields(t *testing.T, r reply) {
	t.Helper()
	for _, name := range rateFields {
		require.NotEmpty(t, r.field(name), name)
	}
}

func hasNoRateFields(t *testing.T, r reply) {
	t.Helper()
	for _, name := range rateFields {
		require.Empty(t, r.field(name), name)
	}
}

// A logBook keeps what is logged.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *logBook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }
