package httplimit_test

import (
	"context"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle/limiter"
	"github.com/weirq/weir/throttle/limiter/httplimit"
	"github.com/weirq/weir/throttle/throttletest"
)

// client is one of its own; edit changes its options.
func client(t *testing.T, r *throttletest.Redis, edit func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: r.Addr(), ContextTimeoutEnabled: true}
	if edit != nil {
		edit(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func onRedis(t *testing.T, c redis.UniversalClient, rules ...limiter.Rule) *limiter.Limiter {
	t.Helper()
	return named(t, limiter.NewRedis(c, limiter.RedisConfig{}), "api", rules...)
}

func TestReplicasShareALimit(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	var replicas []*httptest.Server
	for range 3 {
		l := onRedis(t, client(t, r, nil), limiter.SlidingLog(30, time.Minute))
		replicas = append(replicas, serve(t, middleware(t, httplimit.Config{Limiter: l, Timeout: 5 * time.Second}).Handler(hello)))
	}
	require.Equal(t, 30, count(90, http.StatusOK, func(i int) reply {
		got := get(t, replicas[i%3], "/")
		hasRateFields(t, got)
		return got
	}))
}

func TestConnectionsOfOneClientShareABucket(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	l := onRedis(t, r.Client(), limiter.SlidingLog(2, time.Minute))
	s := serve(t, middleware(t, httplimit.Config{Limiter: l, Timeout: 5 * time.Second}).Handler(hello))
	s.Client().Transport.(*http.Transport).DisableKeepAlives = true
	require.Equal(t, 8, count(10, http.StatusTooManyRequests, func(int) reply { return get(t, s, "/") }))
	names, err := r.Client().Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Equal(t, []string{"weir:{api:ip:127.0.0.1}"}, names)
}

func TestAPIKeysAndUsersAreNotReadableOutside(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	var book logBook
	c := client(t, r, nil)
	s := serve(t, middleware(t, httplimit.Config{
		Limiter: onRedis(t, c, limiter.SlidingLog(2, time.Minute)), Logger: book.logger(), Timeout: time.Second,
		APIKey: httplimit.APIKeyHeader("X-API-Key"),
		User:   func(r *http.Request) string { return r.Header.Get("X-User") },
	}).Handler(hello))
	require.Equal(t, http.StatusOK, get(t, s, "/", "X-API-Key", "secret").code)
	require.Equal(t, http.StatusOK, get(t, s, "/", "X-User", "alice").code)
	names, err := r.Client().Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"weir:{api:key:" + hashOfSecret + "}", "weir:{api:user:" + hashOfAlice + "}"}, names)

	require.NoError(t, c.Close())
	require.Equal(t, http.StatusServiceUnavailable, get(t, s, "/", "X-API-Key", "secret").code)
	require.Contains(t, book.String(), `msg="limiter gave no answer" limiter=api fails=closed`)
	require.NotContains(t, book.String(), "secret")
}

// pausedFor is longer than all requests take that must be answered meanwhile.
const pausedFor = 5 * time.Second

func TestAHangingRedisIsDecidedWithoutInTime(t *testing.T) {
	t.Parallel()
	const maxCalls = 4
	tests := []struct {
		name    string
		onError httplimit.OnError
		heeds   bool // deadlines, which is the client's to do
		code    int
		m       *httplimit.Middleware
		s       *httptest.Server
		book    logBook
	}{
		{name: "open", onError: httplimit.FailOpen, heeds: true, code: http.StatusOK},
		{name: "closed", onError: httplimit.FailClosed, heeds: true, code: http.StatusServiceUnavailable},
		{name: "open, the client heeds no deadline", onError: httplimit.FailOpen, code: http.StatusOK},
		{name: "closed, the client heeds no deadline", onError: httplimit.FailClosed, code: http.StatusServiceUnavailable},
	}
	r := throttletest.StartRedis(t)
	for i := range tests {
		tt := &tests[i]
		c := client(t, r, func(o *redis.Options) {
			o.ContextTimeoutEnabled, o.ReadTimeout, o.MaxRetries = tt.heeds, 2*pausedFor, -1
		})
		l := onRedis(t, c, limiter.SlidingLog(1000, time.Hour))
		_, err := l.Allow(t.Context(), "there is a connection then")
		require.NoError(t, err)
		tt.m = middleware(t, httplimit.Config{Limiter: l, OnError: tt.onError, MaxCalls: maxCalls, Logger: tt.book.logger()})
		tt.s = serve(t, tt.m.Handler(hello))
	}
	paused := time.Now()
	require.NoError(t, r.Client().Do(t.Context(), "client", "pause", pausedFor.Milliseconds(), "all").Err())

	for i := range tests {
		tt := &tests[i]
		t.Run(tt.name, func(t *testing.T) {
			begin := time.Now()
			for range 5 {
				got := get(t, tt.s, "/")
				require.Equal(t, tt.code, got.code)
				require.Less(t, got.took, 200*ms)
				hasNoRateFields(t, got)
				if tt.code == http.StatusServiceUnavailable {
					require.Equal(t, "1", got.field("Retry-After"))
					require.Equal(t, "application/problem+json", got.field("Content-Type"))
					require.Contains(t, got.body, `"status":503`)
				}
			}
			// Many at once are no slower, and leave no more behind.
			var all sync.WaitGroup
			took := make([]time.Duration, 50)
			for i := range took {
				all.Go(func() {
					begin := time.Now()
					tt.m.Handler(hello).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
					took[i] = time.Since(begin)
				})
			}
			all.Wait()
			require.Less(t, slices.Max(took), 200*ms)
			require.LessOrEqual(t, tt.m.CallsUnderWay(), maxCalls)
			if !tt.heeds {
				require.EqualValues(t, maxCalls, tt.m.StuckCalls())
				require.Less(t, get(t, tt.s, "/").took, 90*ms, "all places are taken by calls that are stuck")
			}
			require.Contains(t, tt.book.String(), "fails="+tt.onError.String())
			require.LessOrEqual(t, strings.Count(tt.book.String(), "\n"), int(time.Since(begin)/time.Second)+1)
		})
	}
	require.Less(t, time.Since(paused), pausedFor, "Redis went on before all was asked")
	for i := range tests {
		tt := &tests[i]
		require.Eventually(t, func() bool { return get(t, tt.s, "/").field("RateLimit") != "" }, 2*pausedFor, 20*ms, tt.name)
		require.Eventually(t, func() bool { return tt.m.CallsUnderWay() == 0 && tt.m.StuckCalls() == 0 }, pausedFor, ms, tt.name)
	}
}

func TestARedisThatRefusesConnectionsIsAnOutage(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	c := redis.NewClient(&redis.Options{Addr: address})
	defer c.Close()
	s := serve(t, middleware(t, httplimit.Config{Limiter: onRedis(t, c, limiter.SlidingLog(1, time.Hour)), OnError: httplimit.FailOpen}).Handler(hello))
	for range 3 {
		got := get(t, s, "/")
		require.Equal(t, http.StatusOK, got.code)
		require.Less(t, got.took, 200*ms)
		hasNoRateFields(t, got)
	}
}

// busy holds all commands until it is opened, and panics where it is told to.
type busy struct {
	opened chan struct{}
	panics bool
}

func (b busy) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b busy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b busy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if b.panics {
			panic("broken hook")
		}
		<-b.opened
		return next(ctx, cmd)
	}
}

func TestAPanicInTheClientOfTheStoreIsAnOutage(t *testing.T) {
	t.Parallel()
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer c.Close()
	c.AddHook(busy{panics: true})
	var book logBook
	s := serve(t, middleware(t, httplimit.Config{Limiter: onRedis(t, c, limiter.SlidingLog(1, time.Hour)), Logger: book.logger()}).Handler(hello))
	require.Equal(t, http.StatusServiceUnavailable, get(t, s, "/").code)
	require.Contains(t, book.String(), "panic: broken hook")
}

// The default logger belongs to the process: no other test runs meanwhile.
func TestAnOutageIsLoggedWithoutALogger(t *testing.T) {
	logger, output, flags := slog.Default(), log.Writer(), log.Flags()
	defer func() {
		slog.SetDefault(logger)
		log.SetOutput(output) // which slog.SetDefault sets, and does not set back
		log.SetFlags(flags)
	}()
	var book logBook
	slog.SetDefault(book.logger())
	for _, tt := range []struct {
		logger *slog.Logger
		lines  int
	}{{nil, 1}, {slog.New(slog.DiscardHandler), 0}} {
		before := strings.Count(book.String(), "\n")
		m, err := httplimit.New(httplimit.Config{
			Limiter: onRedis(t, broken(t), limiter.SlidingLog(1, time.Hour)), OnError: httplimit.FailOpen, Logger: tt.logger,
		})
		require.NoError(t, err)
		w := httptest.NewRecorder()
		m.Handler(hello).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, tt.lines, strings.Count(book.String(), "\n")-before)
	}
	require.Contains(t, book.String(), `level=ERROR msg="limiter gave no answer" limiter=api fails=open`)
}

// An outage made every other message wait for a second that never came.
func TestOneMessageHidesNoOther(t *testing.T) {
	t.Parallel()
	const outage, cost = `msg="limiter gave no answer"`, `msg="cost of a request is below 1"`
	for name, paths := range map[string][]string{
		"the outage first": {"/?cost=1", "/?cost=1", "/?cost=0"},
		"the cost first":   {"/?cost=0", "/?cost=0", "/?cost=1"},
	} {
		t.Run(name, func(t *testing.T) {
			var book logBook
			m := middleware(t, httplimit.Config{
				Limiter: onRedis(t, broken(t), limiter.SlidingLog(1, time.Hour)), Logger: book.logger(), Cost: costOf,
			})
			for _, path := range paths {
				m.Handler(hello).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
			}
			require.Contains(t, book.String(), outage)
			require.Contains(t, book.String(), cost)
		})
	}
}

func TestTheStoreIsNotAskedAboutRefusalsForCost(t *testing.T) {
	t.Parallel()
	var book logBook
	s := serve(t, middleware(t, httplimit.Config{
		Limiter: onRedis(t, broken(t), limiter.SlidingLog(10, time.Hour)), Logger: book.logger(), Cost: costOf,
	}).Handler(hello))
	for path, code := range map[string]int{
		"/?cost=0": http.StatusInternalServerError, "/?cost=11": http.StatusBadRequest,
	} {
		r := get(t, s, path)
		require.Equal(t, code, r.code)
		hasNoRateFields(t, r)
	}
	require.NotContains(t, book.String(), "gave no answer")
	require.Equal(t, http.StatusServiceUnavailable, get(t, s, "/?cost=10").code, "this one is asked about")
	require.Contains(t, book.String(), "gave no answer")
}

// broken is a client that fails whenever it is used.
func broken(t *testing.T) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	require.NoError(t, c.Close())
	return c
}

// More requests than calls may be under way are no outage, so long as the calls end.
func TestRequestsWaitForAPlaceAmongTheCalls(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	c := client(t, r, nil)
	l := onRedis(t, c, limiter.SlidingLog(1000, time.Hour))
	_, err := l.Allow(t.Context(), "the server knows the script then")
	require.NoError(t, err)
	opened := make(chan struct{})
	c.AddHook(busy{opened: opened})
	m := middleware(t, httplimit.Config{Limiter: l, MaxCalls: 2, Timeout: 10 * time.Second})
	codes := make(chan int, 20)
	for range 20 {
		go func() {
			w := httptest.NewRecorder()
			m.Handler(hello).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			codes <- w.Code
		}()
	}
	require.Eventually(t, func() bool { return m.CallsUnderWay() == 2 }, pausedFor, ms)
	close(opened)
	for range 20 {
		require.Equal(t, http.StatusOK, <-codes)
	}
}
