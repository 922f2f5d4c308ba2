package throttle

import (
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Rates at the far ends of their bounds, where a product of two numbers does not fit
// into 64 bits, and such that differ by a microsecond in a year.
func TestRatesAreComparedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawRate().Draw(t, "a"), drawRate().Draw(t, "b")
		if rapid.Bool().Draw(t, "close") {
			b = Rate{a.Cost, min(a.Per+time.Microsecond, MaxPeriod)}
		}
		x, y := big.NewRat(a.Cost, a.Per.Microseconds()), big.NewRat(b.Cost, b.Per.Microseconds())
		require.Equal(t, x.Cmp(y) > 0, a.above(b))
		require.False(t, a.above(a))
	})
	require.True(t, Rate{MaxRate, MinPeriod}.above(Rate{MaxRate, MaxPeriod}))
	require.False(t, Rate{60, time.Minute}.above(Rate{1, time.Second}))
	require.False(t, Rate{1, time.Second}.above(Rate{60, time.Minute}))
}

func drawRate() *rapid.Generator[Rate] {
	return rapid.Custom(func(t *rapid.T) Rate {
		return Rate{
			Cost: rapid.Int64Range(1, MaxRate).Draw(t, "cost"),
			Per:  time.Duration(rapid.Int64Range(MinPeriod.Microseconds(), MaxPeriod.Microseconds()).Draw(t, "per")) * time.Microsecond,
		}
	})
}
