package httplimit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/weirq/weir/throttle/limiter"
)

// quotaExceeded is the problem type of draft-ietf-httpapi-ratelimit-headers, with its title.
const (
	quotaExceeded      = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	quotaExceededTitle = "Request cannot be satisfied as assigned quota has been exceeded"
)

// outageRetry is the Retry-After of a 503, seconds: how long an outage lasts nobody knows.
const outageRetry = 1

// A problem is the body of an answer that is no success (RFC 9457).
type problem struct {
	Type       string   `json:"type"`
	Title      string   `json:"title"`
	Status     int      `json:"status"`
	Detail     string   `json:"detail"`
	RetryAfter int64    `json:"retry_after,omitempty"` // seconds
	Violated   []string `json:"violated-policies,omitempty"`
}

// plain is a problem that its status says all about.
func plain(status int, detail string) problem {
	return problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

func (p policies) denial(r limiter.Result, cost int64) problem {
	seconds := retryAfter(r)
	return problem{
		Type: quotaExceeded, Title: quotaExceededTitle, Status: http.StatusTooManyRequests,
		Detail:     fmt.Sprintf("The limit is reached. Try again in %d s.", seconds),
		RetryAfter: seconds, Violated: p.violated(r, cost),
	}
}

func tooCostly(e *limiter.NeverError) problem {
	return plain(http.StatusBadRequest,
		fmt.Sprintf("The request costs %d, more than the %d that can ever pass at once.", e.Cost, e.Most))
}

func costBroken() problem {
	return plain(http.StatusInternalServerError, "What the request costs could not be told.")
}

func unavailable() problem {
	p := plain(http.StatusServiceUnavailable, "Whether the limit is reached cannot be told at the moment.")
	p.RetryAfter = outageRetry
	return p
}

func cutShort() problem {
	p := plain(http.StatusServiceUnavailable, "The request ended while it waited for its turn.")
	p.RetryAfter = outageRetry
	return p
}

// answer sends a problem, to a HEAD request without the body.
func answer(w http.ResponseWriter, r *http.Request, p problem) {
	body, _ := json.Marshal(p) // has no error for texts and numbers
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that is gone need not be told
	}
}
