package throttle

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wholePolicy has something in every field.
func wholePolicy() Policy {
	return Policy{
		Key:   "acme",
		Limit: Limit{Rate: 20, Period: time.Second, Burst: 5},
		Quotas: []Quota{
			{Limit: 1000, Per: time.Hour, Window: Sliding},
			{Limit: 50_000, Per: day, Window: Fixed},
			{Limit: 40_000, Per: day, Window: Fixed, Zone: "Europe/Berlin"},
		},
		MaxInFlight: 7,
		Parent:      "account 1",
		Weight:      3,
		Minimum:     Rate{Cost: 2, Per: time.Minute},
		Hours: &Hours{Zone: "America/New_York", Open: []Opening{
			{Days: []time.Weekday{1, 2, 3, 4, 5}, From: 9 * time.Hour, To: 18 * time.Hour},
			{Days: []time.Weekday{6, 0}, From: 22 * time.Hour, To: 2 * time.Hour},
		}},
		Ramp:       &Ramp{From: 0.1, Over: 10 * time.Minute},
		Ordered:    true,
		Ageing:     30 * time.Second,
		JobTTL:     48 * time.Hour,
		MaxWaiting: 1000,
		Overflow:   DropOldest,
		History:    5000,
		KeepDone:   24 * time.Hour,
		Events:     true,
		Listen:     Adapt,
		Floor:      Rate{Cost: 1, Per: time.Minute},
		Circuit:    &Circuit{Failures: 5, Ratio: 0.5, Rest: time.Minute, Disable: 24 * time.Hour},
	}
}

func TestPolicyBounds(t *testing.T) {
	require.NoError(t, DefaultPolicy.Validate())
	require.NoError(t, wholePolicy().Validate())
	for _, accepted := range []func(*Policy){
		func(p *Policy) { p.Key = "acme:*" },
		func(p *Policy) { p.Key = AnyKey },
		func(p *Policy) { p.MaxInFlight = MaxInFlightBound },
		func(p *Policy) { p.Weight = MaxWeight },
		func(p *Policy) { p.Weight = 0 },
		func(p *Policy) { p.Parent = strings.Repeat("p", MaxKeyBytes) },
		func(p *Policy) { p.Minimum = Rate{1200, time.Minute} },
		func(p *Policy) { p.Quotas = differentQuotas(MaxQuotas) },
		func(p *Policy) { p.Quotas[1].Zone = "America/New_York" },
		func(p *Policy) { p.Quotas[1].Window = Sliding },
		func(p *Policy) { p.Ageing, p.JobTTL, p.History, p.KeepDone = 0, 0, 0, 0 },
		func(p *Policy) { p.Ageing, p.JobTTL, p.KeepDone = MinAgeing, MinTTL, MinKeepDone },
		func(p *Policy) { p.Ageing, p.JobTTL, p.KeepDone = MaxAgeing, MaxTTL, MaxKeepDone },
		func(p *Policy) { p.MaxWaiting, p.History = MaxWaitingBound, MaxHistory },
		func(p *Policy) { p.MaxWaiting, p.Overflow, p.History = 1, DropNewest, 1 },
		func(p *Policy) { p.Overflow = "" },
		func(p *Policy) { p.Floor, p.Circuit = Rate{}, nil },
		func(p *Policy) { p.Listen, p.Floor = Obey, Rate{} },
		func(p *Policy) { p.Listen, p.Floor = Ignore, Rate{} },
		func(p *Policy) { p.Floor = Rate{1200, time.Minute} },
		func(p *Policy) { *p.Circuit = Circuit{Failures: MaxFailures} },
		func(p *Policy) { *p.Circuit = Circuit{Ratio: 1, Rest: MinRest, Disable: MaxDisable} },
		func(p *Policy) { p.MaxWaiting, p.Overflow = 0, "" },
	} {
		p := wholePolicy()
		accepted(&p)
		require.NoError(t, p.Validate())
	}

	for field, changes := range map[string][]func(*Policy){
		"key":           {func(p *Policy) { p.Key = "" }, func(p *Policy) { p.Key = "a*b*" }},
		"rate":          {func(p *Policy) { p.Limit.Rate = 0 }},
		"burst":         {func(p *Policy) { p.Limit.Burst = 0 }},
		"max_in_flight": {func(p *Policy) { p.MaxInFlight = -1 }, func(p *Policy) { p.MaxInFlight = MaxInFlightBound + 1 }},
		"quotas":        {func(p *Policy) { p.Quotas = differentQuotas(MaxQuotas + 1) }},
		"quotas[1]": {
			func(p *Policy) { p.Quotas[1] = Quota{Limit: 1, Per: time.Hour} },
			func(p *Policy) { p.Quotas[0] = Quota{Limit: 1, Per: day, Window: Fixed, Zone: utc} },
		},
		"quotas[1].limit":  {func(p *Policy) { p.Quotas[1].Limit = 0 }},
		"quotas[1].per":    {func(p *Policy) { p.Quotas[1].Per = time.Millisecond }},
		"quotas[0].window": {func(p *Policy) { p.Quotas[0].Window = "x" }},
		"quotas[0].zone":   {func(p *Policy) { p.Quotas[0].Zone = "Europe/Berlin" }},
		"quotas[2].zone":   {func(p *Policy) { p.Quotas[2].Zone = "Europe/Nowhere" }},
		"parent": {
			func(p *Policy) { p.Parent = "acme" }, func(p *Policy) { p.Parent = "acc*" }, func(p *Policy) { p.Parent = "*" },
			func(p *Policy) { p.Parent = "\xff" }, func(p *Policy) { p.Parent = strings.Repeat("p", MaxKeyBytes+1) },
		},
		"weight": {
			func(p *Policy) { p.Weight = -1 }, func(p *Policy) { p.Weight = MaxWeight + 1 },
			func(p *Policy) { p.Parent = "" },
		},
		"minimum": {
			func(p *Policy) { p.Minimum = Rate{21, time.Second} }, func(p *Policy) { p.Minimum = Rate{-1, time.Second} },
			func(p *Policy) { p.Minimum = Rate{0, time.Second} }, func(p *Policy) { p.Minimum = Rate{1, 0} },
			func(p *Policy) { p.Parent, p.Weight = "", 0 },
		},
		"hours.zone":         {func(p *Policy) { p.Hours.Zone = "Local" }},
		"hours.open":         {func(p *Policy) { p.Hours.Open = nil }},
		"hours.open[1].days": {func(p *Policy) { p.Hours.Open[1].Days[0] = 7 }},
		"hours.open[0].to":   {func(p *Policy) { p.Hours.Open[0].To = 9 * time.Hour }},
		"ramp.from":          {func(p *Policy) { p.Ramp.From = math.NaN() }},
		"ramp.over":          {func(p *Policy) { p.Ramp.Over = 0 }},
		"ageing": {
			func(p *Policy) { p.Ageing = MinAgeing - time.Microsecond }, func(p *Policy) { p.Ageing = MaxAgeing + time.Microsecond },
			func(p *Policy) { p.Ageing = -time.Minute }, func(p *Policy) { p.Ageing = time.Minute + 1 },
		},
		"job_ttl": {
			func(p *Policy) { p.JobTTL = MinTTL - time.Microsecond }, func(p *Policy) { p.JobTTL = MaxTTL + time.Microsecond },
			func(p *Policy) { p.JobTTL = -time.Hour }, func(p *Policy) { p.JobTTL = time.Hour + 1 },
		},
		"max_waiting": {func(p *Policy) { p.MaxWaiting = -1 }, func(p *Policy) { p.MaxWaiting = MaxWaitingBound + 1 }},
		"overflow": {
			func(p *Policy) { p.Overflow = "drop" }, func(p *Policy) { p.Overflow = "Refuse" },
			func(p *Policy) { p.MaxWaiting = 0 }, func(p *Policy) { p.MaxWaiting, p.Overflow = 0, Refuse },
		},
		"history": {func(p *Policy) { p.History = -1 }, func(p *Policy) { p.History = MaxHistory + 1 }},
		"keep_done": {
			func(p *Policy) { p.KeepDone = MinKeepDone - time.Microsecond }, func(p *Policy) { p.KeepDone = MaxKeepDone + time.Microsecond },
			func(p *Policy) { p.KeepDone = -time.Hour }, func(p *Policy) { p.KeepDone = time.Hour + 1 },
		},
	} {
		for i, change := range changes {
			p := wholePolicy()
			change(&p)
			refuses(t, p.Validate(), field, "%s %d", field, i)
		}
	}
}

func refuses(t require.TestingT, err error, field string, args ...any) {
	var e *InvalidError
	require.ErrorAs(t, err, &e, args...)
	require.ErrorIs(t, err, ErrInvalid)
	require.Equal(t, field, e.Field, "%v", err)
	require.NotEmpty(t, e.Allowed)
	require.NotContains(t, e.Error(), "%!")
	require.Less(t, len(e.Error()), 400, "the error does not repeat a long value")
}

func differentQuotas(n int) (quotas []Quota) {
	for i := range n {
		quotas = append(quotas, Quota{Limit: 1, Per: time.Duration(i+1) * time.Hour})
	}
	return quotas
}

func TestPolicyRefusalsSayWhatIsAllowed(t *testing.T) {
	for want, change := range map[string]func(*Policy){
		`quotas[1] "1/h sliding" is not allowed: want one quota for each window, period and zone`:                  func(p *Policy) { p.Quotas[1] = Quota{Limit: 1, Per: time.Hour} },
		`parent "acme" is not allowed: want another key than the policy's own`:                                     func(p *Policy) { p.Parent = "acme" },
		`parent "acc*" is not allowed: want an exact key, without *`:                                               func(p *Policy) { p.Parent = "acc*" },
		`weight 3 is not allowed: want none without a parent`:                                                      func(p *Policy) { p.Parent = "" },
		`minimum "21/s" is not allowed: want at most the policy's own rate of 20/s`:                                func(p *Policy) { p.Minimum = Rate{21, time.Second} },
		`hours.zone "CEST" is not allowed: want an IANA time zone such as Europe/Berlin, or UTC`:                   func(p *Policy) { p.Hours.Zone = "CEST" },
		`ageing 25h0m0s is not allowed: want whole microseconds from 1ms to 24h0m0s, or 0 for the default of 1m0s`: func(p *Policy) { p.Ageing = 25 * time.Hour },
		`job_ttl 1µs is not allowed: want whole microseconds from 1ms to 87600h0m0s, or 0 for none`:                func(p *Policy) { p.JobTTL = time.Microsecond },
		`max_waiting -1 is not allowed: want 1 to 1000000000, or 0 for no bound`:                                   func(p *Policy) { p.MaxWaiting = -1 },
		`overflow "drop" is not allowed: want refuse, drop_oldest or drop_newest`:                                  func(p *Policy) { p.Overflow = "drop" },
		`overflow "drop_oldest" is not allowed: want none without max_waiting`:                                     func(p *Policy) { p.MaxWaiting = 0 },
		`history 1000001 is not allowed: want 1 to 1000000, or 0 for none`:                                         func(p *Policy) { p.History = 1_000_001 },
		`keep_done 721h0m0s is not allowed: want whole microseconds from 1s to 720h0m0s, or 0 for none`:            func(p *Policy) { p.KeepDone = 721 * time.Hour },
	} {
		p := wholePolicy()
		change(&p)
		require.EqualError(t, p.Validate(), want)
	}
}

func TestDefaultsLeaveTheCallersPolicyAlone(t *testing.T) {
	given := Policy{
		Parent: "a",
		Quotas: []Quota{{Limit: 1, Per: day, Zone: utc}},
		Hours:  &Hours{Zone: utc, Open: []Opening{{Days: []time.Weekday{0, 1, 1}, To: time.Hour}}},
		Ramp:   &Ramp{From: 0.5, Over: time.Minute},

		MaxWaiting: 5,
	}
	p := given.WithDefaults()
	require.Equal(t, Policy{
		Parent: "a", Weight: 1, MaxInFlight: 100,
		Quotas: []Quota{{Limit: 1, Per: day, Window: Sliding}},
		Hours:  &Hours{Open: []Opening{{Days: []time.Weekday{1, 0}, To: time.Hour}}},
		Ramp:   &Ramp{From: 0.5, Over: time.Minute},

		MaxWaiting: 5, Overflow: Refuse,
	}, p)
	p.Hours.Open[0].Days[0], p.Ramp.From, p.Quotas[0].Limit = 5, 0.1, 9
	require.Equal(t, Policy{
		Parent: "a",
		Quotas: []Quota{{Limit: 1, Per: day, Zone: utc}},
		Hours:  &Hours{Zone: utc, Open: []Opening{{Days: []time.Weekday{0, 1, 1}, To: time.Hour}}},
		Ramp:   &Ramp{From: 0.5, Over: time.Minute},

		MaxWaiting: 5,
	}, given)
}

func TestParseOverflow(t *testing.T) {
	for _, o := range []Overflow{Refuse, DropOldest, DropNewest} {
		got, err := ParseOverflow(string(o))
		require.NoError(t, err)
		require.Equal(t, o, got)
	}
	for _, text := range []string{"", "Refuse", "drop", "drop-oldest", " refuse"} {
		_, err := ParseOverflow(text)
		refuses(t, err, "overflow", text)
	}
}

// What is off stays off, and a job's own policy may say how its jobs wait.
func TestPolicyOfWaiting(t *testing.T) {
	p := Policy{Limit: DefaultPolicy.Limit}.WithDefaults()
	require.Equal(t, Policy{Limit: DefaultPolicy.Limit, MaxInFlight: 100}, p)
	p = wholePolicy()
	require.Equal(t, DropOldest, p.WithDefaults().Overflow)
	p.Parent, p.Weight, p.Minimum, p.Hours.Zone, p.Quotas[2].Zone, p.Quotas[2].Per = "", 0, Rate{}, "", "", 2*day
	require.NoError(t, p.validateBrought())
	p.Ageing = -1
	refuses(t, p.validateBrought(), "ageing")
}

func TestZonesOfAPolicy(t *testing.T) {
	p := wholePolicy()
	require.Equal(t, []string{"Europe/Berlin", "America/New_York"}, p.zones())
	p.Hours.Zone = "Europe/Berlin"
	require.Equal(t, []string{"Europe/Berlin"}, p.zones())
	p.Hours.Zone, p.Quotas[2].Zone = utc, ""
	require.Empty(t, p.zones())
	require.Empty(t, DefaultPolicy.zones())
}
