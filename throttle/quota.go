package throttle

import "time"

// MaxQuotas is the most quotas of one policy.
const MaxQuotas = 8

// Bounds of a quota's period.
const (
	MinQuotaPeriod = time.Second
	MaxQuotaPeriod = MaxPeriod
)

// A Window is how the windows of a quota lie in time.
type Window string

// Windows of a quota.
const (
	// Sliding looks back over the last period at every instant.
	Sliding Window = "sliding"
	// Fixed windows follow each other without a gap: multiples of the period since
	// 1970-01-01T00:00Z, or calendar days of a time zone. Two windows that touch may
	// both be used up in full, the one at its end and the other at its beginning.
	Fixed Window = "fixed"
)

const day = 24 * time.Hour

// A Quota bounds the cost that leaves in one window, beside the limit. A key may
// have several: a job leaves when all of them have room.
type Quota struct {
	Limit  int64         // cost units in a window; 1 to MaxRate
	Per    time.Duration // length of a window; MinQuotaPeriod to MaxQuotaPeriod, whole milliseconds
	Window Window        // empty means Sliding

	// Zone, an IANA name such as Europe/Berlin, makes the windows the calendar days of
	// that zone, which last 23 to 25 hours where clocks change. It asks for Fixed
	// windows of 24 hours. Empty means UTC.
	Zone string
}

func (q Quota) withDefaults() Quota {
	if q.Window == "" {
		q.Window = Sliding
	}
	q.Zone = normalZone(q.Zone)
	return q
}

// String gives limit, period, window and zone: "1000/h sliding",
// "50000/d fixed Europe/Berlin".
func (q Quota) String() string {
	q = q.withDefaults()
	s := FormatRate(q.Limit, q.Per) + " " + string(q.Window)
	if q.Zone != "" {
		s += " " + q.Zone
	}
	return s
}

// Validate tells the first field that is out of bounds, as an [*InvalidError].
func (q Quota) Validate() error {
	if err := q.validateValues(); err != nil {
		return err
	}
	return validateZone(q.Zone)
}

// validateValues is Validate without a look at the zones that this machine knows.
func (q Quota) validateValues() error {
	q = q.withDefaults()
	if q.Limit < 1 || q.Limit > MaxRate {
		return invalid("limit", q.Limit, "1 to %d cost units per window", int64(MaxRate))
	}
	if q.Per < MinQuotaPeriod || q.Per > MaxQuotaPeriod || q.Per%time.Millisecond != 0 {
		return invalid("per", q.Per, "whole milliseconds from %v to %v", MinQuotaPeriod, MaxQuotaPeriod)
	}
	if q.Window != Sliding && q.Window != Fixed {
		return invalid("window", string(q.Window), "%s or %s", Sliding, Fixed)
	}
	if q.Zone != "" && (q.Window != Fixed || q.Per != day) {
		return invalid("zone", q.Zone, "none, unless the window is fixed and the period 24h: the calendar day of a zone")
	}
	return nil
}
