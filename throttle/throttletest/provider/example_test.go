package provider_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weirq/weir/throttle/throttletest/provider"
)

// Behaviours combine, and a record works with any server.
func ExampleNewRecord() {
	h, err := provider.Quota{
		Limit: 2, Window: time.Minute, Dialect: provider.IETF,
		Next: provider.Flaky{Every: 2},
	}.Handler()
	if err != nil {
		fmt.Println(err)
		return
	}
	rec := provider.NewRecord(h, nil)
	for range 3 {
		w := httptest.NewRecorder()
		rec.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/orders", http.NoBody))
		fmt.Println(w.Code, w.Header().Get("RateLimit"))
	}
	fmt.Println(rec.Count(), "calls,", rec.Refusals(), "refused")
	// Output:
	// 200 "default";r=1;t=60
	// 500 "default";r=0;t=60
	// 429 "default";r=0;t=60
	// 3 calls, 1 refused
}
