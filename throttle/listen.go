package throttle

import "time"

// Listening is what a key does with what the other side of its calls says about its pace:
// answers such as 429, Retry-After and X-RateLimit-Remaining.
type Listening string

// The ways to listen.
const (
	// Obey has the key rest as long as it is told to. It is the default.
	Obey Listening = "obey"
	// Adapt is Obey, and lowers the rate and the burst when a call is refused. They rise again as
	// calls succeed, until the limit of the other side is found anew: additive increase, multiplicative
	// decrease (Chiu and Jain, 1989), near a known limit as CUBIC does (RFC 9438). They stay
	// between the Floor and the policy's own.
	Adapt Listening = "adapt"
	// Ignore takes a refused call for one that failed.
	Ignore Listening = "off"
)

// MaxRest bounds how long a key rests when it is told to.
const MaxRest = 24 * time.Hour

// Fared is how a call went, as far as that says something of its key.
type Fared string

// How a call went. The empty Fared says nothing.
const (
	Succeeded Fared = "ok"
	Failed    Fared = "failed"  // counts for the circuit
	OverLimit Fared = "refused" // it was over a limit of the other side
)

// A Circuit keeps calls from a key whose calls fail. It opens after so many failures, and the key
// rests. Then one call at a time goes: when one succeeds the circuit closes, and when it fails it opens for
// twice as long, up to 32 times Rest. The jobs wait.
type Circuit struct {
	Failures int           // in a row that open it; 0 means that the Ratio alone does, at most MaxFailures
	Ratio    float64       // of the last 50 calls, at least 20, that fail and so open it; 0 means never, at most 1
	Rest     time.Duration // before it is tried again; 0 means 30s, MinRest to MaxRest, whole microseconds
	// Disable is for how long calls must have failed, with no success, until the key is paused. Queue.Resume of
	// just that key ends it. 0 means never, at most MaxDisable, whole microseconds.
	Disable time.Duration
}

// Bounds of a [Circuit].
const (
	MaxFailures = 1_000_000
	MinRest     = time.Millisecond
	MaxDisable  = 366 * 24 * time.Hour
	defaultRest = 30 * time.Second
)

func (c Circuit) withDefaults() Circuit {
	if c.Rest == 0 {
		c.Rest = defaultRest
	}
	return c
}

// Validate tells the first field that is out of bounds, as an [*InvalidError].
func (c Circuit) Validate() error {
	switch {
	case c.Failures < 0 || c.Failures > MaxFailures:
		return invalid("failures", c.Failures, "1 to %d in a row, or 0 for none", MaxFailures)
	case !(c.Ratio >= 0 && c.Ratio <= 1):
		return invalid("ratio", c.Ratio, "more than 0, to 1, or 0 for none")
	case c.Failures == 0 && c.Ratio == 0:
		return invalid("failures", c.Failures, "failures in a row, a ratio, or both: without, it never opens")
	case c.Rest != 0 && !isSpan(c.Rest, MinRest, MaxRest):
		return invalid("rest", c.Rest, "whole microseconds from %v to %v, or 0 for the default of %v", MinRest, MaxRest, defaultRest)
	case c.Disable != 0 && !isSpan(c.Disable, MinRest, MaxDisable):
		return invalid("disable", c.Disable, "whole microseconds from %v to %v, or 0 for never", MinRest, MaxDisable)
	}
	return nil
}

// validateListening checks how a policy heeds the other side.
func (p Policy) validateListening() error {
	switch p.Listen {
	case "", Obey, Ignore:
		if p.Floor != (Rate{}) {
			return invalid("floor", p.Floor.String(), "none unless the policy adapts")
		}
	case Adapt:
		if p.Floor == (Rate{}) {
			break
		}
		if err := p.Floor.Validate(); err != nil {
			return within("floor", err)
		}
		if p.Floor.above(p.rate()) {
			return invalid("floor", p.Floor.String(), "at most the policy's own rate of %v", p.rate())
		}
	default:
		return invalid("listen", string(p.Listen), "off, obey or adapt")
	}
	if p.Circuit == nil {
		return nil
	}
	if err := p.Circuit.Validate(); err != nil {
		return within("circuit", err)
	}
	return nil
}
