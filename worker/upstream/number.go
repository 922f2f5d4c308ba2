package upstream

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// longest stands for every longer time.
const longest = time.Duration(math.MaxInt64)

// A number is what a header holds, not negative. Its whole part stops at the largest
// int64 and never wraps: a server that says "for ever" has to be believed more than
// one that says a second.
type number struct {
	whole int64
	nanos int64 // billionths, the rest cut off
	exact bool  // that nothing was cut off
}

// parseNumber reads digits, with or without a fraction. No sign, no exponent.
func parseNumber(s string) (number, bool) {
	whole, fraction, dotted := strings.Cut(s, ".")
	if !digits(whole) || dotted && !digits(fraction) {
		return number{}, false
	}
	n := number{exact: true}
	var err error
	if n.whole, err = strconv.ParseInt(whole, 10, 64); err != nil { // out of range
		n.whole = math.MaxInt64
	}
	const places = 9
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > places {
		fraction, n.exact = fraction[:places], false
	}
	n.nanos, _ = strconv.ParseInt(fraction+strings.Repeat("0", places-len(fraction)), 10, 64)
	return n, true
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// seconds is the number as a time in seconds.
func (n number) seconds() time.Duration {
	if n.whole >= int64(longest/time.Second) {
		return longest
	}
	return time.Duration(n.whole)*time.Second + time.Duration(n.nanos)
}

// wholeSeconds is the same, rounded up.
func (n number) wholeSeconds() time.Duration {
	if n.nanos > 0 || !n.exact {
		n.whole += min(1, math.MaxInt64-n.whole)
	}
	return number{whole: n.whole}.seconds()
}
