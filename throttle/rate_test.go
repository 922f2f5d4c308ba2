package throttle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirq/weir/throttle"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]struct {
		n   int64
		per time.Duration
	}{
		"100/s":        {100, time.Second},
		"5/m":          {5, time.Minute},
		"1000/h":       {1000, time.Hour},
		"7/d":          {7, 24 * time.Hour},
		"1/24h":        {1, 24 * time.Hour},
		"2000/1000ms":  {2000, time.Second},
		"1/1h30m":      {1, 90 * time.Minute},
		"1000000000/s": {1_000_000_000, time.Second},
		"1/1ms":        {1, time.Millisecond},
		"3/1500us":     {3, 1500 * time.Microsecond},
	} {
		n, per, err := throttle.ParseRate(text)
		require.NoError(t, err, text)
		require.Equal(t, want.n, n, text)
		require.Equal(t, want.per, per, text)
	}
}

func TestParseRateRefuses(t *testing.T) {
	for _, text := range []string{
		"", "/", "100", "/s", "s/100", "0/s", "-1/s", "+1/s", "1.5/s", "NaN/s", "Inf/s", "1e3/s", " 1/s", "1 /s", "1/ s",
		"1000000001/s", "9223372036854775807/s", "9223372036854775808/s", "1/0s", "1/-1s", "1/1us", "1/1ns", "1/1500ns",
		"1/367d", "1/8785h", "1/s/s", "1/y", "1/1", "0x10/s", "1_000/s", "1/1.0000001s",
	} {
		_, _, err := throttle.ParseRate(text)
		require.ErrorIs(t, err, throttle.ErrInvalid, text)
		require.Contains(t, err.Error(), "rate ")
		require.Contains(t, err.Error(), `"`+text+`"`, "the error shows what was given")
		require.Contains(t, err.Error(), "want ")
	}
}

func TestRateTextIsReadBack(t *testing.T) {
	for _, text := range []string{"100/s", "5/m", "1000/h", "7/d", "3/1.5ms", "1/1h30m0s"} {
		n, per, err := throttle.ParseRate(text)
		require.NoError(t, err)
		require.Equal(t, text, throttle.FormatRate(n, per))
	}
}

func FuzzParseRate(f *testing.F) {
	for _, text := range []string{"100/s", "1/24h", "0/s", "NaN/s", "1/1ms", "9223372036854775808/s", "/", "1/-1h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, per, err := throttle.ParseRate(text)
		if err != nil {
			require.ErrorIs(t, err, throttle.ErrInvalid)
			return
		}
		require.NoError(t, throttle.Limit{Rate: n, Period: per, Burst: 1}.Validate())
		n2, per2, err := throttle.ParseRate(throttle.FormatRate(n, per))
		require.NoError(t, err)
		require.Equal(t, n, n2)
		require.Equal(t, per, per2)
	})
}

func TestRateBounds(t *testing.T) {
	require.NoError(t, throttle.Rate{Cost: 1, Per: throttle.MinPeriod}.Validate())
	require.NoError(t, throttle.Rate{Cost: throttle.MaxRate, Per: throttle.MaxPeriod}.Validate())
	require.Empty(t, throttle.Rate{}.String())
	require.Equal(t, "1000/h", throttle.Rate{Cost: 1000, Per: time.Hour}.String())
	for _, c := range []struct {
		rate throttle.Rate
		want string
	}{
		{throttle.Rate{}, "rate 0 is not allowed: want 1 to 1000000000 cost units per period"},
		{throttle.Rate{Cost: -1, Per: time.Second}, "rate -1 is not allowed"},
		{throttle.Rate{Cost: throttle.MaxRate + 1, Per: time.Second}, "rate 1000000001 is not allowed"},
		{throttle.Rate{Cost: 1}, "period 0s is not allowed"},
		{throttle.Rate{Cost: 1, Per: time.Second + 1}, "period 1.000000001s is not allowed"},
	} {
		err := c.rate.Validate()
		require.ErrorIs(t, err, throttle.ErrInvalid)
		require.ErrorContains(t, err, c.want)
	}
}

func TestRatesAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := throttle.Rate{
			Cost: rapid.Int64Range(1, throttle.MaxRate).Draw(t, "cost"),
			Per:  time.Duration(rapid.Int64Range(throttle.MinPeriod.Microseconds(), throttle.MaxPeriod.Microseconds()).Draw(t, "per")) * time.Microsecond,
		}
		require.NoError(t, r.Validate())
		n, per, err := throttle.ParseRate(r.String())
		require.NoError(t, err)
		back := throttle.Rate{Cost: n, Per: per}
		require.Equal(t, r, back)
	})
}
