package throttle

import (
	"fmt"
	"math"
	"time"
)

// Bounds of a [Limit].
const (
	MaxRate   = 1_000_000_000        // cost units per period
	MinPeriod = time.Millisecond     // shortest period
	MaxPeriod = 366 * 24 * time.Hour // longest period
	MaxBurst  = 1_000_000_000        // cost units
)

// A Limit is a leaky bucket's rate and burst. In every window of length t at
// most Burst + Rate×t/Period cost may leave.
type Limit struct {
	Rate   int64         // cost units that leak per Period; 1 to MaxRate
	Period time.Duration // MinPeriod to MaxPeriod, whole microseconds
	Burst  int64         // most cost that may leave at once from an idle bucket; 1 to MaxBurst
}

// ParseLimit reads a rate in the form of [ParseRate] and joins it with a burst.
func ParseLimit(rate string, burst int64) (Limit, error) {
	n, per, err := ParseRate(rate)
	if err != nil {
		return Limit{}, err
	}
	l := Limit{Rate: n, Period: per, Burst: burst}
	return l, l.Validate()
}

func validatePeriod(per time.Duration) error {
	if per < MinPeriod || per > MaxPeriod || per%time.Microsecond != 0 {
		return invalid("period", per, "whole microseconds from %v to %v", MinPeriod, MaxPeriod)
	}
	return nil
}

// Validate tells the first field that is out of bounds, as an [*InvalidError].
func (l Limit) Validate() error {
	if l.Rate < 1 || l.Rate > MaxRate {
		return invalid("rate", l.Rate, "1 to %d cost units per period", int64(MaxRate))
	}
	if err := validatePeriod(l.Period); err != nil {
		return err
	}
	if l.Burst < 1 || l.Burst > MaxBurst {
		return invalid("burst", l.Burst, "1 to %d", int64(MaxBurst))
	}
	return nil
}

// String gives the text form, "100/s burst 1".
func (l Limit) String() string {
	return fmt.Sprintf("%s burst %d", FormatRate(l.Rate, l.Period), l.Burst)
}

// Interval is the time one cost unit takes to leak, to the nearest nanosecond.
func (l Limit) Interval() time.Duration {
	return time.Duration(float64(l.Period) / float64(l.Rate))
}

// maxWait stands for every longer wait, here and in the scripts: about 158 years,
// so that an instant that far ahead is still exact in a Lua number.
const maxWait = 5_000_000_000_000_000 * time.Microsecond

// after is the time in which cost leaks, rounded up to a microsecond.
func (l Limit) after(cost float64) time.Duration {
	if cost <= 0 {
		return 0
	}
	us := math.Ceil(cost * float64(l.Period.Microseconds()) / float64(l.Rate))
	if us >= float64(maxWait.Microseconds()) {
		return maxWait
	}
	return time.Duration(us) * time.Microsecond
}
