package throttle

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// A Rate is cost units per period, without a burst. The zero Rate is none.
type Rate struct {
	Cost int64         // cost units per Per; 1 to MaxRate
	Per  time.Duration // MinPeriod to MaxPeriod, whole microseconds
}

// String gives the form that [ParseRate] reads, such as "100/s"; it is empty for
// the zero Rate.
func (r Rate) String() string {
	if r == (Rate{}) {
		return ""
	}
	return FormatRate(r.Cost, r.Per)
}

// Validate tells the first field that is out of bounds, as an [*InvalidError]. The
// zero Rate is out of bounds.
func (r Rate) Validate() error {
	if r.Cost < 1 || r.Cost > MaxRate {
		return invalid("rate", r.Cost, "1 to %d cost units per period", int64(MaxRate))
	}
	return validatePeriod(r.Per)
}

// above compares two valid rates exactly: their cross products need up to 75 bits.
func (r Rate) above(other Rate) bool {
	high, low := bits.Mul64(uint64(r.Cost), uint64(other.Per.Microseconds()))
	otherHigh, otherLow := bits.Mul64(uint64(other.Cost), uint64(r.Per.Microseconds()))
	return high > otherHigh || high == otherHigh && low > otherLow
}

// perMicrosecond is the rate in cost units per microsecond.
func (r Rate) perMicrosecond() float64 {
	return float64(r.Cost) / float64(r.Per.Microseconds())
}

// ParseRate reads the text form of a rate: a whole number, a slash and a
// period. The period is s, m, h or d, or a duration such as 24h or 500ms:
// "100/s", "5/m", "1000/h", "1/24h".
func ParseRate(s string) (n int64, per time.Duration, err error) {
	const allowed = "N/s, N/m, N/h, N/d or N/DURATION, such as 100/s or 1/24h, with N a whole number from 1 to %d"
	count, period, found := strings.Cut(s, "/")
	if !found {
		return 0, 0, invalid("rate", s, allowed, int64(MaxRate))
	}
	n, err = strconv.ParseInt(count, 10, 64)
	if err != nil || n < 1 || n > MaxRate || count[0] == '+' {
		return 0, 0, invalid("rate", s, allowed, int64(MaxRate))
	}
	switch period {
	case "s":
		per = time.Second
	case "m":
		per = time.Minute
	case "h":
		per = time.Hour
	case "d":
		per = 24 * time.Hour
	default:
		if per, err = time.ParseDuration(period); err != nil {
			return 0, 0, invalid("rate", s, allowed, int64(MaxRate))
		}
	}
	if err := validatePeriod(per); err != nil {
		return 0, 0, invalid("rate", s, "a period of whole microseconds from %v to %v", MinPeriod, MaxPeriod)
	}
	return n, per, nil
}

// FormatRate is the inverse of [ParseRate].
func FormatRate(n int64, per time.Duration) string {
	switch per {
	case time.Second:
		return fmt.Sprintf("%d/s", n)
	case time.Minute:
		return fmt.Sprintf("%d/m", n)
	case time.Hour:
		return fmt.Sprintf("%d/h", n)
	case 24 * time.Hour:
		return fmt.Sprintf("%d/d", n)
	}
	return fmt.Sprintf("%d/%v", n, per)
}
