package provider

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A Dialect is how a quota is told in headers.
type Dialect int

// The dialects. All but None and IETF have X-RateLimit-Limit, -Remaining and -Reset
// and differ in what the reset is.
const (
	None        Dialect = iota // not told
	Epoch                      // seconds since 1970, as GitHub has it
	EpochMillis                // milliseconds since 1970
	Delta                      // seconds from now
	IETF                       // RateLimit and RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers
)

func (d Dialect) validate() error {
	if d < None || d > IETF {
		return invalid("dialect", int(d), "None, Epoch, EpochMillis, Delta or IETF")
	}
	return nil
}

// tell sets the headers. Times are rounded up to the dialect's unit: who comes back
// when told finds the quota restored.
func (d Dialect) tell(h http.Header, q Quota, remaining int64, now, reset time.Time) {
	if d == None {
		return
	}
	if d == IETF {
		h.Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=%d`, q.Limit, units(q.Window, time.Second)))
		h.Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%d`, remaining, units(reset.Sub(now), time.Second)))
		return
	}
	var at int64
	switch d {
	case Epoch:
		at = units(time.Duration(reset.UnixNano()), time.Second)
	case EpochMillis:
		at = units(time.Duration(reset.UnixNano()), time.Millisecond)
	default:
		at = units(reset.Sub(now), time.Second)
	}
	h.Set("X-RateLimit-Limit", strconv.FormatInt(q.Limit, 10))
	h.Set("X-RateLimit-Remaining", strconv.FormatInt(remaining, 10))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(at, 10))
}

// RetryAfter is the form in which a refusal says when to come back.
type RetryAfter int

// The forms.
const (
	Seconds RetryAfter = iota // whole seconds from now
	Date                      // a date in the form of IMF-fixdate
	Absent                    // not said
)

func (f RetryAfter) validate() error {
	if f < Seconds || f > Absent {
		return invalid("retry_after", int(f), "Seconds, Date or Absent")
	}
	return nil
}

// tell sets Retry-After, rounded up to a second.
func (f RetryAfter) tell(h http.Header, now, at time.Time) {
	switch f {
	case Seconds:
		h.Set("Retry-After", strconv.FormatInt(units(at.Sub(now), time.Second), 10))
	case Date:
		h.Set("Retry-After", httpDate(at.Add(time.Second-1)))
	}
}

func httpDate(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

// units is d in whole units, rounded up.
func units(d, unit time.Duration) int64 {
	return int64((max(0, d) + unit - 1) / unit)
}
