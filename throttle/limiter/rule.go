package limiter

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/weirq/weir/throttle"
)

// An Algorithm decides what a limit means from one instant to the next.
type Algorithm int

// The algorithms. See the package comment for what each is best for.
const (
	FixedWindowAlgorithm Algorithm = iota + 1
	SlidingLogAlgorithm
	SlidingCounterAlgorithm
	TokenBucketAlgorithm
	LeakyBucketAlgorithm
	LeakyQueueAlgorithm
)

var algorithmNames = map[Algorithm]string{
	FixedWindowAlgorithm: "fixed window", SlidingLogAlgorithm: "sliding log",
	SlidingCounterAlgorithm: "sliding counter", TokenBucketAlgorithm: "token bucket",
	LeakyBucketAlgorithm: "leaky bucket", LeakyQueueAlgorithm: "leaky queue",
}

// String gives the name in words, "token bucket".
func (a Algorithm) String() string {
	if name, ok := algorithmNames[a]; ok {
		return name
	}
	return fmt.Sprintf("algorithm %d", int(a))
}

// Windowed tells the algorithms that count what came within a window from those that have a rate and a
// burst.
func (a Algorithm) Windowed() bool { return a <= SlidingCounterAlgorithm }

// MaxLog bounds the cost per window of a [SlidingLog], which keeps an entry of about
// ten bytes for each unit of it. A [SlidingCounter] has no such bound.
const MaxLog = 10_000

// A Rule is a limit and the algorithm that keeps it. Rules are made by [FixedWindow],
// [SlidingLog], [SlidingCounter], [TokenBucket], [LeakyBucket] and [LeakyQueue];
// [New] refuses one that is out of bounds.
type Rule struct {
	algorithm Algorithm
	limit     throttle.Limit
}

// FixedWindow allows a cost of n in each window of length per. Windows start at whole
// multiples of per since 1970, UTC: those of a minute at full minutes. Around the edge
// of a window up to 2n may pass within per.
func FixedWindow(n int64, per time.Duration) Rule { return window(FixedWindowAlgorithm, n, per) }

// SlidingLog allows a cost of n, at most [MaxLog], in every window of length per,
// wherever it begins. It remembers the instant of each unit of cost.
func SlidingLog(n int64, per time.Duration) Rule { return window(SlidingLogAlgorithm, n, per) }

// SlidingCounter allows about a cost of n in every window of length per. It counts in
// aligned windows as [FixedWindow] does, and takes what came in the last one as spread
// evenly over it. So long as it truly is spread evenly the bound is n; at worst, with all of it
// at one edge of a window, less than 2n pass within per.
func SlidingCounter(n int64, per time.Duration) Rule { return window(SlidingCounterAlgorithm, n, per) }

// TokenBucket allows a cost of burst + rate × t in every span t. The bucket holds tokens,
// as many as the burst when full; one comes back each 1/rate. When the limit is changed
// the tokens stay, up to the new burst.
func TokenBucket(l throttle.Limit) Rule { return Rule{TokenBucketAlgorithm, l} }

// LeakyBucket allows a cost of burst + rate × t in every span t, as [TokenBucket] does. It is
// the leaky bucket as a meter, in the form of the generic cell rate algorithm (ITU-T
// I.371): all it stores is the instant at which the bucket will be empty, one number. When
// the limit is changed that instant stays.
func LeakyBucket(l throttle.Limit) Rule { return Rule{LeakyBucketAlgorithm, l} }

// LeakyQueue is the leaky bucket as a queue: what is allowed waits for its turn, at the
// rate and one by one, which [Result].Delay tells. The burst is how much cost may
// wait, that which leaves at once included; beyond it calls are denied.
func LeakyQueue(l throttle.Limit) Rule { return Rule{LeakyQueueAlgorithm, l} }

func window(a Algorithm, n int64, per time.Duration) Rule {
	return Rule{a, throttle.Limit{Rate: n, Period: per, Burst: n}}
}

// Algorithm tells which algorithm keeps the limit.
func (r Rule) Algorithm() Algorithm { return r.algorithm }

// Limit is the limit. That of a window has its cost as the burst.
func (r Rule) Limit() throttle.Limit { return r.limit }

// String gives "token bucket 10/s burst 5", "fixed window 10/m".
func (r Rule) String() string {
	if r.algorithm.Windowed() {
		return r.algorithm.String() + " " + throttle.FormatRate(r.limit.Rate, r.limit.Period)
	}
	return r.algorithm.String() + " " + r.limit.String()
}

// Validate tells the first field that is out of bounds, as a [*throttle.InvalidError].
func (r Rule) Validate() error {
	if _, known := algorithmNames[r.algorithm]; !known {
		return invalid("algorithm", int(r.algorithm), "a rule made by FixedWindow, SlidingLog, SlidingCounter, TokenBucket, LeakyBucket or LeakyQueue")
	}
	if err := r.limit.Validate(); err != nil {
		return err
	}
	if r.algorithm == SlidingLogAlgorithm && r.limit.Rate > MaxLog {
		return invalid("rate", r.limit.Rate, "1 to %d per window for a sliding log; a sliding counter has no such bound", MaxLog)
	}
	if !r.algorithm.Windowed() {
		rate, period := r.reduced()
		if fill, _, ok := muldiv(r.limit.Burst, period, rate); !ok || fill > forever {
			return invalid("burst", r.limit.Burst, "a burst that comes back within %v at a rate of %s",
				time.Duration(forever)*time.Microsecond, throttle.FormatRate(r.limit.Rate, r.limit.Period))
		}
	}
	return nil
}

// forever bounds all spans, µs: about 79 years. The sum of a wait, the time in which a burst comes back
// and an instant is exact in a number of Lua then.
const forever = 2_500_000_000_000_000

// reduced is the rate per period, µs, in lowest terms.
func (r Rule) reduced() (rate, period int64) {
	rate, period = r.limit.Rate, r.limit.Period.Microseconds()
	a, b := rate, period
	for b != 0 {
		a, b = b, a%b
	}
	return rate / a, period / a
}

// muldiv is a × b / c of numbers from 0, and what remains; exact where the result fits.
func muldiv(a, b, c int64) (quotient, remainder int64, ok bool) {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high >= uint64(c) {
		return 0, 0, false
	}
	q, r := bits.Div64(high, low, uint64(c))
	return int64(q), int64(r), q <= math.MaxInt64
}

func invalid(field string, value any, allowed string, args ...any) error {
	return &throttle.InvalidError{Field: field, Value: value, Allowed: fmt.Sprintf(allowed, args...)}
}
