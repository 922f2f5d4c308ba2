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

// A Problem is why a request is refused. As JSON it is a body by RFC 9457.
type Problem struct {
	Type       string   `json:"type"` // a URI, "about:blank" if the status says it all
	Title      string   `json:"title"`
	Status     int      `json:"status"` // 400, 429, 500 or 503, as the package comment has them
	Detail     string   `json:"detail"`
	RetryAfter int64    `json:"retry_after,omitempty"`       // seconds; 0 if it is no use to try again
	Violated   []string `json:"violated-policies,omitempty"` // of a 429: names of the policies that deny
}

// plain is a problem that its status says all about.
func plain(status int, detail string) Problem {
	return Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

func (p policies) denial(r limiter.Result, cost int64) Problem {
	seconds := retryAfter(r)
	return Problem{
		Type: quotaExceeded, Title: quotaExceededTitle, Status: http.StatusTooManyRequests,
		Detail:     fmt.Sprintf("The limit is reached. Try again in %d s.", seconds),
		RetryAfter: seconds, Violated: p.violated(r, cost),
	}
}

func tooCostly(e *limiter.NeverError) Problem {
	return plain(http.StatusBadRequest,
		fmt.Sprintf("The request costs %d, more than the %d that can ever pass at once.", e.Cost, e.Most))
}

func costBroken() Problem {
	return plain(http.StatusInternalServerError, "What the request costs could not be told.")
}

func unavailable() Problem {
	p := plain(http.StatusServiceUnavailable, "Whether the limit is reached cannot be told at the moment.")
	p.RetryAfter = outageRetry
	return p
}

func cutShort() Problem {
	p := plain(http.StatusServiceUnavailable, "The request ended while it waited for its turn.")
	p.RetryAfter = outageRetry
	return p
}

// WriteProblem sends a problem as application/problem+json, to a HEAD request without the body. It
// is what a [Config] without Deny does, and what Deny may leave the rest to.
func WriteProblem(w http.ResponseWriter, r *http.Request, p Problem) {
	body, _ := json.Marshal(p) // has no error for texts and numbers
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that is gone need not be told
	}
}
