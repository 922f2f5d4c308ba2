package throttle_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func TestRampBounds(t *testing.T) {
	require.NoError(t, throttle.Ramp{From: 0.1, Over: throttle.MinRamp}.Validate())
	require.NoError(t, throttle.Ramp{From: math.Nextafter(1, 0), Over: throttle.MaxRamp}.Validate())
	require.NoError(t, throttle.Ramp{From: math.SmallestNonzeroFloat64, Over: time.Minute + time.Microsecond}.Validate())
	for _, from := range []float64{0, 1, -0.5, 2, math.NaN(), math.Inf(1), math.Inf(-1)} {
		refused(t, throttle.Ramp{From: from, Over: time.Minute}.Validate(), "from")
	}
	for _, over := range []time.Duration{0, -time.Minute, throttle.MinRamp - 1, throttle.MaxRamp + time.Microsecond, time.Minute + 1} {
		refused(t, throttle.Ramp{From: 0.5, Over: over}.Validate(), "over")
	}
}
