package upstream_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weirq/weir/worker/upstream"
)

func ExampleRead() {
	h := http.Header{}
	h.Set("RateLimit-Policy", `"default";q=100;w=60`)
	h.Set("RateLimit", `"default";r=0;t=30`)
	said := upstream.Read(http.StatusOK, h, time.Now(), 24*time.Hour)
	fmt.Println(said.Refused, said.RetryAfter, said.Limit, said.Window)
	// Output: false 30s 100 1m0s
}
