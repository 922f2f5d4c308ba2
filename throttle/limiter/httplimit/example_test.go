package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weirq/weir/throttle/limiter"
	"github.com/weirq/weir/throttle/limiter/httplimit"
)

func Example() {
	clock := func() time.Time { return time.Unix(1700000007, 0) } // for the output; leave it out elsewhere
	store := limiter.NewMemory(limiter.MemoryConfig{Now: clock})  // NewRedis for several processes
	known := map[string]bool{"k-123": true}

	limit := func(name string, rule limiter.Rule) *httplimit.Middleware {
		l, err := limiter.New(store, name, rule)
		if err != nil {
			panic(err)
		}
		m, err := httplimit.New(httplimit.Config{
			Limiter: l,
			OnError: httplimit.FailOpen,
			APIKey: func(r *http.Request) string {
				if key := r.Header.Get("X-API-Key"); known[key] {
					return key
				}
				return "" // no client by its own word: it is known by its address
			},
			Now: clock,
		})
		if err != nil {
			panic(err)
		}
		return m
	}

	mux := http.NewServeMux()
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "found") })
	mux.Handle("GET /search", limit("search", limiter.FixedWindow(2, time.Minute)).Handler(answer))
	mux.Handle("GET /export", limit("export", limiter.FixedWindow(2, time.Minute)).Handler(answer))

	for _, path := range []string{"/search", "/search", "/search", "/export"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("X-API-Key", "k-123")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		h := w.Header()
		fmt.Printf("%s: %d, left %s, reset %s, retry after %q\n", path, w.Code,
			h.Get("X-RateLimit-Remaining"), h.Get("X-RateLimit-Reset"), h.Get("Retry-After"))
	}
	// Output:
	// /search: 200, left 1, reset 1700000040, retry after ""
	// /search: 200, left 0, reset 1700000040, retry after ""
	// /search: 429, left 0, reset 1700000040, retry after "33"
	// /export: 200, left 1, reset 1700000040, retry after ""
}
