package throttle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func TestQuotaBounds(t *testing.T) {
	const day = 24 * time.Hour
	for text, q := range map[string]throttle.Quota{
		"1000/h sliding":             {Limit: 1000, Per: time.Hour},
		"1/s sliding":                {Limit: 1, Per: throttle.MinQuotaPeriod, Window: throttle.Sliding},
		"1000000000/8784h0m0s fixed": {Limit: throttle.MaxRate, Per: throttle.MaxQuotaPeriod, Window: throttle.Fixed},
		"3/1.001s sliding":           {Limit: 3, Per: 1001 * time.Millisecond},
		"50000/d fixed":              {Limit: 50_000, Per: day, Window: throttle.Fixed, Zone: "UTC"},
		"7/d fixed Europe/Berlin":    {Limit: 7, Per: day, Window: throttle.Fixed, Zone: "Europe/Berlin"},
		"7/m sliding":                {Limit: 7, Per: time.Minute, Zone: "UTC"},
	} {
		require.NoError(t, q.Validate(), text)
		require.Equal(t, text, q.String())
	}
	for want, quotas := range map[string][]throttle.Quota{
		"limit": {{Per: time.Hour}, {Limit: -1, Per: time.Hour}, {Limit: throttle.MaxRate + 1, Per: time.Hour}},
		"per": {
			{Limit: 1}, {Limit: 1, Per: -time.Hour}, {Limit: 1, Per: time.Second - time.Millisecond},
			{Limit: 1, Per: time.Second + time.Microsecond}, {Limit: 1, Per: throttle.MaxQuotaPeriod + time.Millisecond},
		},
		"window": {{Limit: 1, Per: time.Hour, Window: "Fixed"}, {Limit: 1, Per: time.Hour, Window: "tumbling"}},
		"zone": {
			{Limit: 1, Per: day, Zone: "Europe/Berlin"},
			{Limit: 1, Per: time.Hour, Window: throttle.Fixed, Zone: "Europe/Berlin"},
			{Limit: 1, Per: 2 * day, Window: throttle.Fixed, Zone: "Europe/Berlin"},
			{Limit: 1, Per: day, Window: throttle.Fixed, Zone: "Europe/Nowhere"},
			{Limit: 1, Per: day, Window: throttle.Fixed, Zone: "Local"},
		},
	} {
		for _, q := range quotas {
			refused(t, q.Validate(), want)
		}
	}
}

// refused requires a refusal of one field, told in full.
func refused(t require.TestingT, err error, field string) {
	var e *throttle.InvalidError
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, throttle.ErrInvalid)
	require.Equal(t, field, e.Field, "%v", err)
	require.NotEmpty(t, e.Allowed)
	require.NotContains(t, e.Error(), "%!")
}
