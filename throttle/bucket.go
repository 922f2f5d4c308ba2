package throttle

import "time"

// A Bucket is the arithmetic of the leaky bucket used as a meter (ITU-T I.371,
// where it is called the continuous-state leaky bucket): Level cost units stand
// in it at instant At and leak at the limit's rate; a job of cost c may leave
// when Level + c <= Burst. A job dearer than the burst leaves from an empty
// bucket and puts it into debt.
//
// It is the model that the Redis scripts are tested against, and what a worker
// measures its own departures by. Time is an argument, so a Bucket has no clock
// of its own. If time steps back nothing leaks, and the new instant becomes the
// base: nobody waits for the clock to catch up. The zero Level is an idle bucket
// with its whole burst to give. A Bucket is not safe for concurrent use.
type Bucket struct {
	Limit Limit
	Level float64   // cost units, as of At
	At    time.Time // the instant at which Level was true
}

// Leak moves the bucket to now.
func (b *Bucket) Leak(now time.Time) {
	if d := now.Sub(b.At); d > 0 && b.Level > 0 {
		// The scripts do the same in the same order, so that both agree to the last bit.
		leaked := float64(d.Microseconds()) * float64(b.Limit.Rate) / float64(b.Limit.Period.Microseconds())
		b.Level = max(0, b.Level-leaked)
	}
	b.At = now
}

// Wait is how long after now a job of the given cost may leave: 0 if at once.
// It changes nothing but the instant of the bucket.
func (b *Bucket) Wait(now time.Time, cost float64) time.Duration {
	b.Leak(now)
	return b.Limit.after(b.Level - max(0, float64(b.Limit.Burst)-cost))
}

// Take charges cost at now, whether or not it may leave yet: the slot of a job
// that was told to wait is charged when it is given out, not when it is used.
func (b *Bucket) Take(now time.Time, cost float64) {
	b.Leak(now)
	b.Level += cost
}
