package httplimit_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/limiter"
	"github.com/weirq/weir/throttle/limiter/httplimit"
)

const sevenSecondsIn = 1700000007 // 33 s before a full minute

func TestFieldsAndBodyOfAnswers(t *testing.T) {
	t.Parallel()
	s := serve(t, middleware(t, httplimit.Config{
		Limiter: inMemory(t, sevenSecondsIn, limiter.FixedWindow(10, time.Minute)), Now: at(sevenSecondsIn),
	}).Handler(hello))

	for i := range 10 {
		r := get(t, s, "/")
		left := strconv.Itoa(9 - i)
		require.Equal(t, http.StatusOK, r.code)
		require.Equal(t, "hello", r.body)
		require.Equal(t, "10", r.field("X-RateLimit-Limit"))
		require.Equal(t, left, r.field("X-RateLimit-Remaining"))
		require.Equal(t, "1700000040", r.field("X-RateLimit-Reset"))
		require.Equal(t, `"api";q=10;w=60`, r.field("RateLimit-Policy"))
		require.Equal(t, `"api";r=`+left+`;t=33`, r.field("RateLimit"))
		require.Empty(t, r.field("Retry-After"))
	}

	r := get(t, s, "/")
	require.Equal(t, http.StatusTooManyRequests, r.code)
	require.Equal(t, "10", r.field("X-RateLimit-Limit"))
	require.Equal(t, "0", r.field("X-RateLimit-Remaining"))
	require.Equal(t, "1700000040", r.field("X-RateLimit-Reset"))
	require.Equal(t, "33", r.field("Retry-After"))
	require.Equal(t, `"api";q=10;w=60`, r.field("RateLimit-Policy"))
	require.Equal(t, `"api";r=0;t=33`, r.field("RateLimit"))
	require.Equal(t, "application/problem+json", r.field("Content-Type"))
	require.JSONEq(t, `{
		"type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
		"title": "Request cannot be satisfied as assigned quota has been exceeded",
		"status": 429,
		"detail": "The limit is reached. Try again in 33 s.",
		"retry_after": 33,
		"violated-policies": ["api"]
	}`, r.body)

	head := do(t, s, http.MethodHead, "/")
	require.Equal(t, http.StatusTooManyRequests, head.code)
	require.Empty(t, head.body)
	for name := range r.header {
		if name != "Date" {
			require.Equal(t, r.field(name), head.field(name), name)
		}
	}
}

func TestHeadHasNoBodyBehindAnyWriter(t *testing.T) {
	t.Parallel()
	h := middleware(t, httplimit.Config{Limiter: inMemory(t, 0, limiter.FixedWindow(1, time.Minute))}).Handler(hello)
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodHead, "/", nil))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/", nil))
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Empty(t, w.Body.String())
}

func TestRetryAfterIsRoundedUpToWholeSeconds(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{200 * ms: "1", 1000 * ms: "1", 1200 * ms: "2"} {
		s := serve(t, middleware(t, httplimit.Config{
			Limiter: inMemory(t, 0, limiter.TokenBucket(throttle.Limit{Rate: 1, Period: wait, Burst: 1})), Now: at(0),
		}).Handler(hello))
		require.Equal(t, http.StatusOK, get(t, s, "/").code)
		r := get(t, s, "/")
		require.Equal(t, http.StatusTooManyRequests, r.code)
		require.Equal(t, want, r.field("Retry-After"), wait)
		require.Equal(t, want, r.field("X-RateLimit-Reset"), wait)
	}
}

func TestPoliciesOfRules(t *testing.T) {
	t.Parallel()
	bucket := func(rate int64, per time.Duration, burst int64) limiter.Rule {
		return limiter.TokenBucket(throttle.Limit{Rate: rate, Period: per, Burst: burst})
	}
	for _, tt := range []struct {
		name   string
		rules  []limiter.Rule
		policy string
		state  string
	}{
		{
			"a window", []limiter.Rule{limiter.SlidingCounter(10, time.Minute)},
			`"api";q=10;w=60`, `"api";r=9;t=113`, // one still counts in the next window
		},
		{
			"a window of less than a second", []limiter.Rule{limiter.FixedWindow(10, 250*ms)},
			`"api";q=40;w=1`, `"api";r=9;t=1`,
		},
		{
			"a window of no whole seconds", []limiter.Rule{limiter.SlidingLog(5, 1500*ms)},
			`"api";q=6;w=2`, `"api";r=4;t=2`,
		},
		{
			"a bucket", []limiter.Rule{bucket(10, time.Minute, 5)},
			`"api";q=10;w=60;weir-burst=5`, `"api";r=4;t=6`,
		},
		{
			"the largest", []limiter.Rule{bucket(throttle.MaxRate, time.Millisecond, throttle.MaxBurst)},
			`"api";q=1000000000000;w=1;weir-burst=1000000000`, `"api";r=999999999;t=1`,
		},
		{
			"the longest", []limiter.Rule{bucket(throttle.MaxRate, throttle.MaxPeriod-ms, 1)},
			`"api";q=1000000000;w=31622400;weir-burst=1`, `"api";r=0;t=1`,
		},
		{
			"several", []limiter.Rule{limiter.SlidingLog(5, time.Second), limiter.FixedWindow(100, time.Minute)},
			`"api:1";q=5;w=1, "api:2";q=100;w=60`, `"api:1";r=4;t=1, "api:2";r=99;t=53`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, middleware(t, httplimit.Config{Limiter: inMemory(t, 7, tt.rules...)}).Handler(hello))
			r := get(t, s, "/")
			require.Equal(t, tt.policy, r.field("RateLimit-Policy"))
			require.Equal(t, tt.state, r.field("RateLimit"))
			for _, name := range []string{"RateLimit-Policy", "RateLimit"} {
				_, err := httpsfv.UnmarshalList(r.header.Values(name))
				require.NoError(t, err)
			}
		})
	}
}

func TestDenialNamesTheRulesThatDeny(t *testing.T) {
	t.Parallel()
	l := inMemory(t, 7, limiter.SlidingLog(100, time.Hour), limiter.FixedWindow(2, time.Minute))
	s := serve(t, middleware(t, httplimit.Config{Limiter: l}).Handler(hello))
	get(t, s, "/")
	get(t, s, "/")
	r := get(t, s, "/")
	require.Equal(t, http.StatusTooManyRequests, r.code)
	require.Contains(t, r.body, `"violated-policies":["api:2"]`)
	require.Equal(t, "53", r.field("Retry-After"))
	// The log of the first rule takes an hour to empty; the wait must not be told shorter than a window.
	require.Equal(t, `"api:1";r=98;t=53, "api:2";r=0;t=53`, r.field("RateLimit"))
}

func TestCostsOfRequests(t *testing.T) {
	t.Parallel()
	var book logBook
	m := middleware(t, httplimit.Config{
		Limiter: inMemory(t, sevenSecondsIn, limiter.FixedWindow(10, time.Minute)), Now: at(sevenSecondsIn), Logger: book.logger(),
		Cost: costOf,
	})
	s := serve(t, m.Handler(hello))
	for _, tt := range []struct {
		cost, code int
		left       string
		retry      string
		detail     string
	}{
		{4, 200, "6", "", ""},
		{11, 400, "", "", "The request costs 11, more than the 10 that can ever pass at once."},
		{0, 500, "", "", "What the request costs could not be told."},
		{-1, 500, "", "", "What the request costs could not be told."},
		{7, 429, "6", "33", "The limit is reached. Try again in 33 s."},
		{6, 200, "0", "", ""},
	} {
		r := get(t, s, "/?cost="+strconv.Itoa(tt.cost))
		require.Equal(t, tt.code, r.code, "cost %d", tt.cost)
		require.Equal(t, tt.left, r.field("X-RateLimit-Remaining"), "cost %d", tt.cost)
		require.Equal(t, tt.retry, r.field("Retry-After"), "cost %d", tt.cost)
		if tt.left != "" {
			hasRateFields(t, r)
		} else {
			hasNoRateFields(t, r)
		}
		if tt.detail != "" {
			require.Equal(t, "application/problem+json", r.field("Content-Type"))
			require.Contains(t, r.body, `"status":`+strconv.Itoa(tt.code))
			require.Contains(t, r.body, tt.detail)
		}
	}
	require.Equal(t, 1, strings.Count(book.String(), "\n"), "one line a second")
	require.Contains(t, book.String(), `msg="cost of a request is below 1" limiter=api cost=0`)
}

func TestSkippedRequestsAreNotCountedAndHaveNoFields(t *testing.T) {
	t.Parallel()
	s := serve(t, middleware(t, httplimit.Config{
		Limiter: inMemory(t, 0, limiter.FixedWindow(1, time.Minute)),
		Skip:    func(r *http.Request) bool { return r.URL.Path == "/healthz" },
		Cost: func(r *http.Request) int64 {
			if r.URL.Path == "/healthz" {
				return 0 // of which nobody must hear
			}
			return 1
		},
	}).Handler(hello))
	health := func() {
		for range 3 {
			r := get(t, s, "/healthz")
			require.Equal(t, http.StatusOK, r.code)
			require.Equal(t, "hello", r.body)
			hasNoRateFields(t, r)
		}
	}
	health()
	require.Equal(t, http.StatusOK, get(t, s, "/").code)
	require.Equal(t, http.StatusTooManyRequests, get(t, s, "/").code)
	health()
}

func TestDenyAnswersWhatIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, middleware(t, httplimit.Config{
		Limiter: inMemory(t, sevenSecondsIn, limiter.FixedWindow(1, time.Minute)), Now: at(sevenSecondsIn),
		Cost: costOf,
		Deny: func(w http.ResponseWriter, r *http.Request, p httplimit.Problem) {
			if p.Status == http.StatusInternalServerError {
				httplimit.WriteProblem(w, r, p)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(p.Status)
			fmt.Fprintf(w, "<p>%s %v", p.Detail, p.Violated)
		},
	}).Handler(hello))
	require.Equal(t, "hello", get(t, s, "/?cost=1").body)

	denied := get(t, s, "/?cost=1")
	require.Equal(t, http.StatusTooManyRequests, denied.code)
	require.Equal(t, "text/html", denied.field("Content-Type"))
	require.Equal(t, "33", denied.field("Retry-After"))
	require.Equal(t, "<p>The limit is reached. Try again in 33 s. [api]", denied.body)
	hasRateFields(t, denied)

	costly := get(t, s, "/?cost=2")
	require.Equal(t, http.StatusBadRequest, costly.code)
	require.Equal(t, "<p>The request costs 2, more than the 1 that can ever pass at once. []", costly.body)
	require.Empty(t, costly.field("Retry-After"))

	broken := get(t, s, "/?cost=0")
	require.Equal(t, http.StatusInternalServerError, broken.code)
	require.Equal(t, "application/problem+json", broken.field("Content-Type"))
}

func TestRoutesWithEqualLimitsShareNothing(t *testing.T) {
	t.Parallel()
	store := limiter.NewMemory(limiter.MemoryConfig{Now: at(sevenSecondsIn)})
	route := func(name string) http.Handler {
		return middleware(t, httplimit.Config{Limiter: named(t, store, name, limiter.FixedWindow(10, time.Minute))}).Handler(hello)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /a", route("a"))
	mux.Handle("GET /b", route("b"))
	router := chi.NewRouter()
	router.Method(http.MethodGet, "/a", route("chi-a"))
	router.Group(func(r chi.Router) {
		r.Use(middleware(t, httplimit.Config{Limiter: named(t, store, "chi-b", limiter.FixedWindow(10, time.Minute))}).Handler)
		r.Get("/b", hello)
	})
	for name, h := range map[string]http.Handler{"ServeMux": mux, "chi": router} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, h)
			for _, path := range []string{"/a", "/b"} {
				require.Equal(t, 10, count(20, http.StatusOK, func(int) reply {
					r := get(t, s, path)
					hasRateFields(t, r)
					return r
				}), path)
			}
		})
	}
}

func TestMiddlewaresBehindOneAnotherBothTellTheirPolicy(t *testing.T) {
	t.Parallel()
	all := middleware(t, httplimit.Config{Limiter: inMemory(t, 0, limiter.FixedWindow(100, time.Hour))})
	store := limiter.NewMemory(limiter.MemoryConfig{Now: at(0)})
	one := middleware(t, httplimit.Config{Limiter: named(t, store, "one", limiter.FixedWindow(10, time.Minute))})
	r := get(t, serve(t, all.Handler(one.Handler(hello))), "/")
	require.Equal(t, []string{`"api";q=100;w=3600`, `"one";q=10;w=60`}, r.header.Values("RateLimit-Policy"))
	require.Len(t, r.header.Values("RateLimit"), 2)
	require.Equal(t, []string{"10"}, r.header.Values("X-RateLimit-Limit"))
}

func TestHandlerMayChangeFieldsAndStream(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	m := middleware(t, httplimit.Config{Limiter: inMemory(t, 0, limiter.FixedWindow(100, time.Minute))})
	mux := http.NewServeMux()
	mux.HandleFunc("/set", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-RateLimit-Limit", "7")
		w.Header().Del("RateLimit")
	})
	mux.HandleFunc("/stream", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "one\n")
		w.(http.Flusher).Flush()
		<-more
		_, _ = io.WriteString(w, "two\n")
	})
	mux.HandleFunc("/hijack", func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 299 Mine\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			_ = c.Close()
		}
	})
	s := serve(t, m.Handler(mux))

	r := get(t, s, "/set")
	require.Equal(t, "7", r.field("X-RateLimit-Limit"))
	require.Empty(t, r.field("RateLimit"))
	require.Equal(t, 299, get(t, s, "/hijack").code)

	resp, err := s.Client().Get(s.URL + "/stream")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, "100", resp.Header.Get("X-RateLimit-Limit"))
	lines := bufio.NewReader(resp.Body)
	first, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "one\n", first)
	close(more)
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	require.Equal(t, "two\n", string(rest))
}

func TestForwardedForIsWorthNothingWithoutATrustedProxy(t *testing.T) {
	t.Parallel()
	s := serve(t, middleware(t, httplimit.Config{
		Limiter: inMemory(t, sevenSecondsIn, limiter.FixedWindow(10, time.Minute)),
	}).Handler(hello))
	require.Equal(t, 90, count(100, http.StatusTooManyRequests, func(i int) reply {
		return get(t, s, "/", "X-Forwarded-For", net.IPv4(203, 0, 113, byte(i)).String())
	}))
}

func TestClientsBehindATrustedProxyHaveTheirOwnLimits(t *testing.T) {
	t.Parallel()
	s := serve(t, middleware(t, httplimit.Config{
		Limiter:        inMemory(t, sevenSecondsIn, limiter.FixedWindow(10, time.Minute)),
		TrustedProxies: prefixes("127.0.0.0/8", "10.0.0.0/8"),
	}).Handler(hello))
	for _, client := range []string{"198.51.100.7", "198.51.100.8"} {
		require.Equal(t, 10, count(20, http.StatusOK, func(i int) reply {
			madeUp := net.IPv4(6, 6, 6, byte(i)).String()
			return get(t, s, "/", "X-Forwarded-For", madeUp+", "+client, "X-Forwarded-For", "10.0.0.5")
		}), client)
	}
}

func TestAQueueHasRequestsWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	const turn = 100 * ms
	l := named(t, limiter.NewMemory(limiter.MemoryConfig{}), "queue",
		limiter.LeakyQueue(throttle.Limit{Rate: 1, Period: turn, Burst: 3}))
	begin := time.Now()
	started := make(chan time.Duration, 4)
	s := serve(t, middleware(t, httplimit.Config{Limiter: l}).Handler(http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) { started <- time.Since(begin) })))
	codes := make(chan int, 4)
	for range 4 {
		go func() {
			resp, err := s.Client().Get(s.URL)
			if err != nil {
				codes <- 0
				return
			}
			_ = resp.Body.Close()
			codes <- resp.StatusCode
		}()
	}
	var denied int
	for range 4 {
		switch code := <-codes; code {
		case http.StatusTooManyRequests:
			denied++
		default:
			require.Equal(t, http.StatusOK, code)
		}
	}
	require.Equal(t, 1, denied)
	for i := range 3 {
		require.GreaterOrEqual(t, <-started, time.Duration(i)*turn)
	}
}

func TestFieldsOfAQueueCountFromTheEndOfTheWait(t *testing.T) {
	t.Parallel()
	s := serve(t, middleware(t, httplimit.Config{
		Limiter: inMemory(t, 100, limiter.LeakyQueue(throttle.Limit{Rate: 1, Period: 600 * ms, Burst: 3})), Now: at(100),
	}).Handler(hello))
	get(t, s, "/")
	r := get(t, s, "/") // waits 0.6 s, and the queue is empty 1.2 s after it came
	require.Equal(t, http.StatusOK, r.code)
	require.GreaterOrEqual(t, r.took, 600*ms)
	require.Equal(t, "102", r.field("X-RateLimit-Reset"))
	require.Equal(t, `"api";r=1;t=1`, r.field("RateLimit"))
}

func TestAClientThatIsGoneDoesNotWait(t *testing.T) {
	t.Parallel()
	l := named(t, limiter.NewMemory(limiter.MemoryConfig{}), "queue",
		limiter.LeakyQueue(throttle.Limit{Rate: 1, Period: time.Hour, Burst: 2}))
	var passed atomic.Int64
	h := middleware(t, httplimit.Config{Limiter: l}).Handler(http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) { passed.Add(1) }))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.EqualValues(t, 1, passed.Load())
}
