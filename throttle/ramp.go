package throttle

import "time"

// Bounds of the time a ramp takes.
const (
	MinRamp = time.Second
	MaxRamp = 24 * time.Hour
)

// A Ramp brings a key back gently after a pause, a cool-down or an outage: its rate
// starts at a fraction and grows in a straight line to the full one.
type Ramp struct {
	From float64       // fraction of the rate to start at; above 0 and below 1
	Over time.Duration // until the rate is full; MinRamp to MaxRamp, whole microseconds
}

// Validate tells the first field that is out of bounds, as an [*InvalidError].
func (r Ramp) Validate() error {
	if !(r.From > 0 && r.From < 1) { // in this form it refuses NaN too
		return invalid("from", r.From, "a fraction of the rate above 0 and below 1")
	}
	if r.Over < MinRamp || r.Over > MaxRamp || r.Over%time.Microsecond != 0 {
		return invalid("over", r.Over, "whole microseconds from %v to %v", MinRamp, MaxRamp)
	}
	return nil
}
