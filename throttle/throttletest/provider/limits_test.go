package provider_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest/provider"
)

// A watch is a clock that is moved by hand.
type watch struct{ ns atomic.Int64 }

func newWatch(at time.Time) *watch {
	w := &watch{}
	w.ns.Store(at.UnixNano())
	return w
}

func (w *watch) now() time.Time       { return time.Unix(0, w.ns.Load()) }
func (w *watch) move(d time.Duration) { w.ns.Add(int64(d)) }

var noon = time.Date(2024, 2, 29, 12, 0, 0, 250_000_000, time.UTC)

func TestQuota(t *testing.T) {
	w := newWatch(noon)
	s := provider.Start(t, provider.Quota{Limit: 2, Window: 10 * time.Second, Now: w.now, Next: provider.Answer{Status: 201}})
	client := newClient(t)
	call := func(path string) int {
		status, _, _ := post(t, client, s.URL+path)
		return status
	}
	require.Equal(t, []int{201, 201, 429}, []int{call("/a"), call("/a"), call("/a")})
	require.Equal(t, 201, call("/b"), "a key of its own")
	w.move(10*time.Second - 1)
	require.Equal(t, 429, call("/a"))
	w.move(1)
	require.Equal(t, []int{201, 201, 429}, []int{call("/a"), call("/a"), call("/a")})
	require.Len(t, s.Accepted("/a"), 4)
	require.Len(t, s.Refused("/a"), 3)
	require.Equal(t, 3, s.Refusals())
	require.Equal(t, 8, s.Count())
}

func TestQuotaTellsOfItself(t *testing.T) {
	for name, tc := range map[string]struct {
		dialect provider.Dialect
		form    provider.RetryAfter
		passed  http.Header // of the first of two calls, at noon
		refused http.Header // of the third, 3s later
	}{
		"not": {provider.None, provider.Absent, http.Header{}, http.Header{}},
		"seconds": {
			provider.None, provider.Seconds, http.Header{}, http.Header{"Retry-After": {"7"}},
		},
		"a date": {
			provider.None, provider.Date, http.Header{}, http.Header{"Retry-After": {"Thu, 29 Feb 2024 12:00:11 GMT"}},
		},
		"epoch": {
			provider.Epoch, provider.Absent,
			http.Header{"X-Ratelimit-Limit": {"2"}, "X-Ratelimit-Remaining": {"1"}, "X-Ratelimit-Reset": {"1709208011"}},
			http.Header{"X-Ratelimit-Limit": {"2"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1709208011"}},
		},
		"epoch in milliseconds": {
			provider.EpochMillis, provider.Absent,
			http.Header{"X-Ratelimit-Limit": {"2"}, "X-Ratelimit-Remaining": {"1"}, "X-Ratelimit-Reset": {"1709208010250"}},
			http.Header{"X-Ratelimit-Limit": {"2"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1709208010250"}},
		},
		"delta": {
			provider.Delta, provider.Seconds,
			http.Header{"X-Ratelimit-Limit": {"2"}, "X-Ratelimit-Remaining": {"1"}, "X-Ratelimit-Reset": {"10"}},
			http.Header{"X-Ratelimit-Limit": {"2"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"7"}, "Retry-After": {"7"}},
		},
		"ietf": {
			provider.IETF, provider.Absent,
			http.Header{"Ratelimit-Policy": {`"default";q=2;w=10`}, "Ratelimit": {`"default";r=1;t=10`}},
			http.Header{"Ratelimit-Policy": {`"default";q=2;w=10`}, "Ratelimit": {`"default";r=0;t=7`}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatch(noon)
			s := provider.Start(t, provider.Quota{
				Limit: 2, Window: 10 * time.Second, Dialect: tc.dialect, RetryAfter: tc.form, Status: 403, Now: w.now,
			})
			client := newClient(t)
			_, h, _ := post(t, client, s.URL)
			require.Equal(t, "Thu, 29 Feb 2024 12:00:00 GMT", h.Get("Date"), "of the same clock")
			require.Equal(t, tc.passed, told(h))
			post(t, client, s.URL)
			w.move(3 * time.Second)
			status, h, _ := post(t, client, s.URL)
			require.Equal(t, 403, status)
			require.Equal(t, tc.refused, told(h))
			require.Equal(t, 1, s.Refusals(), "whatever its status")
		})
	}
}

// told leaves out what every answer has.
func told(h http.Header) http.Header {
	for _, name := range []string{"Date", "Content-Length", "Content-Type"} {
		h.Del(name)
	}
	return h
}

func TestQuotaUnderManyAtOnce(t *testing.T) {
	w := newWatch(noon)
	s := provider.Start(t, provider.Quota{Limit: 20, Window: time.Second, Now: w.now})
	client := newClient(t)
	var calls sync.WaitGroup
	for range 10 {
		calls.Go(func() {
			for range 10 {
				resp, err := client.Post(s.URL+"/k", "", nil)
				if err == nil {
					_ = resp.Body.Close()
				}
			}
		})
	}
	calls.Wait()
	require.Equal(t, 100, s.Count())
	require.Len(t, s.Accepted("/k"), 20)
	require.Len(t, s.Refused("/k"), 80)
}

func TestKeys(t *testing.T) {
	token := func(r *http.Request) string { return r.Header.Get("X-Token") }
	for name, b := range map[string]provider.Behaviour{
		"quota":  provider.Quota{Limit: 1, Window: time.Hour, Key: token},
		"bucket": provider.Bucket{Limit: throttle.Limit{Rate: 1, Period: time.Hour, Burst: 1}, Key: token},
	} {
		t.Run(name, func(t *testing.T) {
			s := provider.Start(t, b)
			require.Equal(t, []int{200, 429}, statuses(t, s, 2))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
			require.NoError(t, err)
			req.Header.Set("X-Token", "another")
			resp, err := newClient(t).Do(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, 200, resp.StatusCode)
		})
	}
}

func TestBucket(t *testing.T) {
	w := newWatch(noon)
	s := provider.Start(t, provider.Bucket{Now: w.now})
	client := newClient(t)
	call := func() (int, string, string) {
		status, h, _ := post(t, client, s.URL+"/k")
		return status, h.Get("X-Shopify-Shop-Api-Call-Limit"), h.Get("Retry-After")
	}
	expect := func(status int, level, after string) {
		t.Helper()
		s, l, a := call()
		require.Equal(t, []any{status, level, after}, []any{s, l, a})
	}
	expect(200, "1/40", "")
	for range 38 {
		post(t, client, s.URL+"/k")
	}
	expect(200, "40/40", "")
	expect(429, "40/40", "2.0")
	w.move(500*time.Millisecond - time.Microsecond)
	expect(429, "40/40", "2.0")
	w.move(time.Microsecond)
	expect(200, "40/40", "")
	w.move(4 * time.Second)
	expect(200, "33/40", "")
	w.move(time.Hour)
	expect(200, "1/40", "")
	require.Equal(t, 2, s.Refusals())
}
