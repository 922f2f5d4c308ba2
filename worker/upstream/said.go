package upstream

import (
	"net/http"
	"time"
)

// Said is what one answer tells.
type Said struct {
	// Refused means that the call was over a limit and not served: every 429, a 503
	// with a usable Retry-After, and, as GitHub answers, a 403 with a usable Retry-After
	// or with nothing remaining.
	Refused bool
	// RetryAfter is how long everything for this side should rest, from the answer on;
	// more than 0 and at most the bound that [Read] was given. 0: the answer does not say.
	// An answer that served the call has one too if it left nothing of the quota.
	RetryAfter time.Duration
	Limit      int64         // calls per Window; 0: unknown
	Window     time.Duration // 0: unknown
	Remaining  int64         // calls left; -1: unknown
	Reset      time.Duration // until Remaining is Limit again; 0: unknown. Not bounded
}

// Read reads an answer that came in at now. most bounds RetryAfter: whoever
// answers could otherwise stop a key for ever. With a most of 0 or less there is no
// RetryAfter.
//
// Retry-After is preferred to a reset. It counts with a 403, a 429 and any 5xx, and
// otherwise only when nothing remains: elsewhere it is about something else, such as
// when to ask for the result of a 202, and there are APIs that send it with every answer.
//
// A reset says when to come back if nothing remains, or if the call was refused and
// what remains is unknown. A call that was refused while something remains met another
// limit than the one that is told.
//
// Where several quotas are told, the one with the least remaining counts, as a whole.
//
// Instants are measured from the answer's own Date if it has one within a day of now,
// so that a clock of the other side that is wrong does no harm, and else from now.
func Read(status int, h http.Header, now time.Time, most time.Duration) Said {
	sent := sentAt(h, now)
	said := Said{Remaining: unknown}
	if q, ok := least(quotas(h, sent)); ok {
		said.Limit, said.Window, said.Remaining, said.Reset = q.limit, q.window, q.remaining, q.reset
	}
	spent := said.Remaining == 0
	after := retryAfter(h, sent)

	switch status {
	case http.StatusTooManyRequests:
		said.Refused = true
	case http.StatusServiceUnavailable:
		said.Refused = after > 0
	case http.StatusForbidden:
		said.Refused = after > 0 || spent
	}
	switch {
	case after > 0 && (said.Refused || status >= http.StatusInternalServerError || spent):
		said.RetryAfter = after
	case spent || said.Refused && said.Remaining == unknown:
		said.RetryAfter = said.Reset
	}
	said.RetryAfter = max(0, min(said.RetryAfter, most))
	return said
}
