package upstream

import (
	"net/http"
	"strings"
	"time"
)

// clockSkew is how far the Date of an answer may lie from now. More than the
// largest error that a mistaken time zone makes; a server whose clock is further off
// has none, and dates an answer 1970.
const clockSkew = 24 * time.Hour

// sentAt is the instant that the instants in an answer count from.
func sentAt(h http.Header, now time.Time) time.Time {
	t, ok := parseDate(h.Get("Date"), now)
	if !ok || t.Sub(now).Abs() > clockSkew {
		return now
	}
	return t
}

// parseDate reads the three forms of a date in HTTP (RFC 9110, section 5.6.7).
func parseDate(s string, now time.Time) (time.Time, bool) {
	s = strings.TrimSpace(s)
	t, err := http.ParseTime(s)
	// Of another zone than GMT only the name would be there, and package time would look
	// for it in the zone of this machine.
	if err != nil || strings.Contains(s, ",") && !strings.HasSuffix(s, " GMT") {
		return time.Time{}, false
	}
	t = t.UTC() // where this machine's zone has a GMT, t is in that zone, summer time and all
	// The form of RFC 850 has two digits of the year: of those that end so, the last that
	// lies no more than 50 years ahead. Package time has 1969 to 2068 in their place.
	if _, err := time.Parse(time.RFC850, s); err == nil {
		past := (now.Year() + 50 - t.Year()) % 100
		if past < 0 {
			past += 100
		}
		t = t.AddDate(now.Year()+50-past-t.Year(), 0, 0)
	}
	return t, true
}

// retryAfter reads Retry-After: seconds or a date (RFC 9110, section 10.2.3). A
// fraction of seconds is not in the standard, but Shopify sends "2.0". 0 if there is
// nothing usable, which is also what a date in the past is.
func retryAfter(h http.Header, sent time.Time) time.Duration {
	s := strings.TrimSpace(h.Get("Retry-After"))
	if n, ok := parseNumber(s); ok {
		return n.wholeSeconds()
	}
	if t, ok := parseDate(s, sent); ok {
		return max(0, t.Sub(sent))
	}
	return 0
}

// firstEpoch is a second in 2001, for clocks that have not been set.
const firstEpoch = 1_000_000_000

// parseReset reads the time until a reset in any of its dialects; 0 if there is none.
//
// A bare number is told by its magnitude. At half the seconds since 1970 it is, as an
// instant, decades ago, and as a time to wait, decades: nobody means either, so from
// there on it counts seconds since 1970 and below it is a time to wait. Likewise, from
// half the milliseconds since 1970 on, which as seconds are 14,000 years and more
// ahead, it counts milliseconds since 1970.
func parseReset(s string, sent time.Time) time.Duration {
	s = strings.TrimSpace(s)
	if n, ok := parseNumber(s); ok {
		seconds := max(sent.Unix(), firstEpoch)
		switch {
		case n.whole >= seconds*1000/2:
			return max(0, time.UnixMilli(n.whole).Sub(sent))
		case n.whole >= seconds/2:
			return max(0, time.Unix(n.whole, n.nanos).Sub(sent))
		default:
			return n.seconds()
		}
	}
	if d, err := time.ParseDuration(s); err == nil { // "6m0s", "20ms"
		return max(0, d)
	}
	if t, ok := parseDate(s, sent); ok {
		return max(0, t.Sub(sent))
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return max(0, t.Sub(sent))
	}
	return 0
}
