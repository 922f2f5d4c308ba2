package throttle

// AnyKey is the key of the default policy.
const AnyKey = "*"

// MaxInFlightBound is the highest MaxInFlight.
const MaxInFlightBound = 1_000_000

// A Policy is all that governs a key.
type Policy struct {
	Key         string // the exact key, or AnyKey for every key that has no policy of its own
	Limit       Limit
	MaxInFlight int // released and running jobs at once; 0 means 100, at most MaxInFlightBound
}

// DefaultPolicy governs keys when no policy says otherwise: 10/s, burst 1, 100
// in flight.
var DefaultPolicy = Policy{
	Key:         AnyKey,
	Limit:       Limit{Rate: 10, Period: 1_000_000_000, Burst: 1},
	MaxInFlight: 100,
}

func (p Policy) withDefaults() Policy {
	if p.MaxInFlight == 0 {
		p.MaxInFlight = DefaultPolicy.MaxInFlight
	}
	return p
}

// Validate tells the first field that is out of bounds, as an [*InvalidError].
func (p Policy) Validate() error {
	if err := ValidateKey(p.Key); err != nil {
		return err
	}
	if err := p.Limit.Validate(); err != nil {
		return err
	}
	if p.MaxInFlight < 0 || p.MaxInFlight > MaxInFlightBound {
		return invalid("max_in_flight", p.MaxInFlight, "1 to %d, or 0 for the default of %d", MaxInFlightBound, DefaultPolicy.MaxInFlight)
	}
	return nil
}
