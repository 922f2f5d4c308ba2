package provider

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/weirq/weir/throttle"
)

// Bucket refuses the calls of a key that do not fit into its leaky bucket, and says
// with every answer how full that is, as the REST API of Shopify does:
// X-Shopify-Shop-Api-Call-Limit: 32/40.
type Bucket struct {
	Limit throttle.Limit // the zero Limit means 2/s burst 40
	// RetryAfter of a refusal is always the same, as there; whole tenths of a second,
	// 0 means 2s.
	RetryAfter time.Duration
	Key        func(*http.Request) string // nil means the path of the URL
	Now        func() time.Time           // nil means time.Now
	Next       Behaviour                  // answers the calls that fit; nil means an empty 200
}

// Handler makes the handler.
func (b Bucket) Handler() (http.Handler, error) {
	if b.Limit == (throttle.Limit{}) {
		b.Limit = throttle.Limit{Rate: 2, Period: time.Second, Burst: 40}
	}
	if err := b.Limit.Validate(); err != nil {
		return nil, err
	}
	if b.RetryAfter == 0 {
		b.RetryAfter = 2 * time.Second
	}
	if b.RetryAfter < 0 || b.RetryAfter%(100*time.Millisecond) != 0 {
		return nil, invalid("retry_after", b.RetryAfter, "whole tenths of a second, or 0 for 2s")
	}
	h := &bucketHandler{Bucket: b, buckets: map[string]*throttle.Bucket{}}
	h.Key, h.Now = keyed(b.Key), clock(b.Now)
	var err error
	h.next, err = next(b.Next)
	return h, err
}

type bucketHandler struct {
	Bucket
	next http.Handler

	mu      sync.Mutex
	buckets map[string]*throttle.Bucket
}

// take puts a call into its bucket if it fits.
func (h *bucketHandler) take(key string) (fits bool, level int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.Now()
	b := h.buckets[key]
	if b == nil {
		b = &throttle.Bucket{Limit: h.Limit, At: now}
		h.buckets[key] = b
	}
	fits = b.Wait(now, 1) == 0
	if fits {
		b.Take(now, 1)
	}
	return fits, int64(math.Ceil(b.Level))
}

func (h *bucketHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fits, level := h.take(h.Key(r))
	w.Header().Set("X-Shopify-Shop-Api-Call-Limit", fmt.Sprintf("%d/%d", level, h.Limit.Burst))
	if fits {
		h.next.ServeHTTP(w, r)
		return
	}
	refused(r)
	w.Header().Set("Retry-After", fmt.Sprintf("%.1f", h.RetryAfter.Seconds()))
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = io.WriteString(w, `{"errors":"over the limit"}`)
}
