package throttle

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPolicyText(t *testing.T) {
	plain := Policy{Key: "k", Limit: Limit{Rate: 10, Period: time.Second, Burst: 1}}
	with := func(change func(*Policy)) Policy {
		p := plain
		change(&p)
		return p
	}
	for want, p := range map[string]Policy{
		`10 1000000 1 100`: plain,
		`20 1000000 5 7 {"q":[[1000,3600000000,"s",""],[50000,86400000000,"f",""],[40000,86400000000,"f","Europe/Berlin"]],` +
			`"up":"account 1","w":3,"min":[2,60000000],` +
			`"open":["America/New_York",0,120,540,1080,1980,2520,3420,3960,4860,5400,6300,6840,8520,8760,9960,10080],` +
			`"days":["mon-fri 09:00-18:00","sat,sun 22:00-02:00"],"ramp":[0.1,600000000],` +
			`"ord":true,"age":30000000,"ttl":172800000000,"most":[1000,"o"],"log":5000,"keep":86400000000,` +
			`"say":"a","floor":[1,60000000],"cut":[5,0.5,60000000,86400000000],"ev":true}`: wholePolicy(),
		`10 1000000 1 100 {"up":"a"}`:                   with(func(p *Policy) { p.Parent = "a" }),
		`10 1000000 1 100 {"up":"a","min":[1,1000000]}`: with(func(p *Policy) { p.Parent, p.Weight, p.Minimum = "a", 1, Rate{1, time.Second} }),
		`10 1000000 1 100 {"open":["",0,10080],"days":["00:00-24:00"]}`: with(func(p *Policy) {
			p.Hours = &Hours{Zone: utc, Open: []Opening{{To: day}}}
		}),
		`10 1000000 1 100 {"ramp":[1e-9,1000000]}`:           with(func(p *Policy) { p.Ramp = &Ramp{From: 1e-9, Over: time.Second} }),
		`10 1000000 1 100 {"q":[[1,31622400000000,"s",""]]}`: with(func(p *Policy) { p.Quotas = []Quota{{Limit: 1, Per: MaxQuotaPeriod}} }),
		`10 1000000 1 100 {"ord":true}`:                      with(func(p *Policy) { p.Ordered = true }),
		`10 1000000 1 100 {"age":60000000}`:                  with(func(p *Policy) { p.Ageing = DefaultAgeing }),
		`10 1000000 1 100 {"ttl":315360000000000}`:           with(func(p *Policy) { p.JobTTL = MaxTTL }),
		`10 1000000 1 100 {"most":[1,"r"]}`:                  with(func(p *Policy) { p.MaxWaiting = 1 }),
		`10 1000000 1 100 {"most":[1000000000,"n"],"log":1}`: with(func(p *Policy) { p.MaxWaiting, p.Overflow, p.History = MaxWaitingBound, DropNewest, 1 }),
		`10 1000000 1 100 {"say":"x"}`:                       with(func(p *Policy) { p.Listen = Ignore }),
		`10 1000000 1 100 {"say":"a","floor":[1,1000000]}`:   with(func(p *Policy) { p.Listen, p.Floor = Adapt, Rate{1, time.Second} }),
		`10 1000000 1 100 {"cut":[3,0.5,30000000,0]}`:        with(func(p *Policy) { p.Circuit = &Circuit{Failures: 3, Ratio: 0.5} }),
		`10 1000000 1 100 {"keep":1000000}`:                  with(func(p *Policy) { p.KeepDone = MinKeepDone }),
	} {
		require.NoError(t, p.Validate())
		require.Equal(t, want, p.text())
		back, err := policyFromText(p.Key, want)
		require.NoError(t, err)
		require.Equal(t, p.WithDefaults(), back)
	}
}

// drawPolicy draws valid policies, with their defaults left out now and then.
func drawPolicy() *rapid.Generator[Policy] {
	return rapid.Custom(func(t *rapid.T) Policy {
		rate := drawRate().Draw(t, "rate")
		p := Policy{
			Key:         rapid.SampledFrom([]string{"k", "*", "k:*", "\x00", "ключ"}).Draw(t, "key"),
			Limit:       Limit{Rate: rate.Cost, Period: rate.Per, Burst: rapid.Int64Range(1, MaxBurst).Draw(t, "burst")},
			MaxInFlight: rapid.IntRange(0, MaxInFlightBound).Draw(t, "max in flight"),
			Quotas:      rapid.SliceOfNDistinct(drawQuota(), 0, MaxQuotas, quotaName).Draw(t, "quotas"),
		}
		if rapid.Bool().Draw(t, "child") {
			p.Parent = rapid.StringMatching(`p[^*]{0,8}`).Draw(t, "parent")
			p.Weight = rapid.IntRange(0, MaxWeight).Draw(t, "weight")
			if rapid.Bool().Draw(t, "has a minimum") {
				p.Minimum = Rate{rapid.Int64Range(1, rate.Cost).Draw(t, "minimum"), rate.Per}
			}
		}
		if rapid.Bool().Draw(t, "has hours") {
			p.Hours = &Hours{
				Zone: rapid.SampledFrom(append(someZones, "")).Draw(t, "zone"),
				Open: rapid.SliceOfN(drawOpening(), 1, 5).Draw(t, "open"),
			}
		}
		if rapid.Bool().Draw(t, "has a ramp") {
			p.Ramp = &Ramp{
				From: rapid.Float64Range(math.SmallestNonzeroFloat64, math.Nextafter(1, 0)).Draw(t, "from"),
				Over: time.Duration(rapid.Int64Range(MinRamp.Microseconds(), MaxRamp.Microseconds()).Draw(t, "over")) * time.Microsecond,
			}
		}
		drawWaiting(t, &p)
		return p
	})
}

// drawWaiting draws how jobs wait and what is kept of them.
func drawWaiting(t *rapid.T, p *Policy) {
	span := func(shortest, longest time.Duration, label string) time.Duration {
		us := rapid.Int64Range(shortest.Microseconds(), longest.Microseconds())
		return time.Duration(rapid.OneOf(rapid.Just(int64(0)), us).Draw(t, label)) * time.Microsecond
	}
	p.Ordered = rapid.Bool().Draw(t, "ordered")
	p.Ageing = span(MinAgeing, MaxAgeing, "ageing")
	p.JobTTL = span(MinTTL, MaxTTL, "job ttl")
	p.History = rapid.IntRange(0, MaxHistory).Draw(t, "history")
	p.KeepDone = span(MinKeepDone, MaxKeepDone, "keep done")
	p.Listen = rapid.SampledFrom([]Listening{"", Ignore, Adapt}).Draw(t, "listen")
	if p.Listen == Adapt && rapid.Bool().Draw(t, "floored") {
		p.Floor = p.rate()
	}
	if rapid.Bool().Draw(t, "circuit") {
		p.Circuit = &Circuit{
			Failures: rapid.IntRange(1, MaxFailures).Draw(t, "failures"), Ratio: rapid.Float64Range(0, 1).Draw(t, "ratio"),
			Rest: max(MinRest, span(MinRest, MaxRest, "rest")), Disable: span(MinRest, MaxDisable, "disable"),
		}
	}
	if rapid.Bool().Draw(t, "bounded") {
		p.MaxWaiting = rapid.Int64Range(1, MaxWaitingBound).Draw(t, "max waiting")
		p.Overflow = rapid.SampledFrom([]Overflow{"", Refuse, DropOldest, DropNewest}).Draw(t, "overflow")
	}
}

func quotaName(q Quota) string {
	q = q.withDefaults()
	return fmt.Sprint(q.Per, q.Window, q.Zone)
}

func drawQuota() *rapid.Generator[Quota] {
	return rapid.Custom(func(t *rapid.T) Quota {
		q := Quota{
			Limit:  rapid.Int64Range(1, MaxRate).Draw(t, "limit"),
			Per:    time.Duration(rapid.Int64Range(1000, MaxQuotaPeriod.Milliseconds()).Draw(t, "per")) * time.Millisecond,
			Window: rapid.SampledFrom([]Window{"", Sliding, Fixed}).Draw(t, "window"),
		}
		if rapid.Bool().Draw(t, "a calendar day") {
			q.Window, q.Per, q.Zone = Fixed, day, rapid.SampledFrom(someZones).Draw(t, "zone")
		}
		return q
	})
}

func TestPoliciesAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy().Draw(t, "policy")
		require.NoError(t, p.Validate())
		text := p.text()
		require.Regexp(t, `^\d+ \d+ \d+ \d+( \{.+\})?$`, text)
		back, err := policyFromText(p.Key, text)
		require.NoError(t, err, text)
		require.Equal(t, p.WithDefaults(), back)
		require.Equal(t, text, back.text())
		require.Equal(t, p.WithDefaults().text(), text)
	})
}

func TestDamagedPolicyTextsAreTold(t *testing.T) {
	for _, text := range []string{
		"", " ", "10", "10 1000000 1", "10 1000000 1 ", "10 1000000 1 0", "0 1000000 1 1", "10 0 1 1", "10 1000000 0 1", "10 1000000 1 1000001",
		"-10 1000000 1 1", "+10 1000000 1 1", "1e1 1000000 1 1", "10 1000000 1.5 1", "10  1000000 1 1", " 10 1000000 1 1", "99999999999999999999 1 1 1",
		"10 9223372036854775807 1 1", "10 18446744073710551 1 1", "10 1000000 1 100 ", "10 1000000 1 100 x", "10 1000000 1 100 []", "10 1000000 1 100 {} {}",
		`10 1000000 1 100 {"new":1}`, `10 1000000 1 100 {"w":2}`, `10 1000000 1 100 {"up":"a","w":1001}`, `10 1000000 1 100 {"up":"a*"}`,
		`10 1000000 1 100 {"up":"a","min":[11,1000000]}`, `10 1000000 1 100 {"up":"a","min":[1]}`, `10 1000000 1 100 {"up":"a","min":[1,null]}`,
		`10 1000000 1 100 {"up":"a","min":[1,-18446744072709551616]}`, `10 1000000 1 100 {"up":"a","min":[1,-18446744072709551]}`,
		`10 1000000 1 100 {"q":[[1,3600000000,"s"]]}`, `10 1000000 1 100 {"q":[[1,3600000000,"x",""]]}`, `10 1000000 1 100 {"q":[[1,3600000000.5,"s",""]]}`,
		`10 1000000 1 100 {"q":[[1,3600000000,"s",""],[2,3600000000,"s",""]]}`, `10 1000000 1 100 {"q":[[0,3600000000,"s",""]]}`,
		`10 1000000 1 100 {"q":[[1,3600000000,"f","Europe/Berlin"]]}`, `10 1000000 1 100 {"q":{"a":1}}`,
		`10 1000000 1 100 {"open":["",0,10080]}`, `10 1000000 1 100 {"days":["00:00-24:00"]}`, `10 1000000 1 100 {"open":[],"days":["00:00-24:00"]}`,
		`10 1000000 1 100 {"open":["",0,10079],"days":["00:00-24:00"]}`, `10 1000000 1 100 {"open":["",0,10080],"days":["00:00-25:00"]}`,
		`10 1000000 1 100 {"open":["",0],"days":["00:00-24:00"]}`, `10 1000000 1 100 {"open":[0,0,10080],"days":["00:00-24:00"]}`,
		`10 1000000 1 100 {"ramp":[1,1000000]}`, `10 1000000 1 100 {"ramp":[0.5,1]}`, `10 1000000 1 100 {"ramp":[0.5]}`, `10 1000000 1 100 {"ramp":["0.5",1000000]}`,
		`10 1000000 1 100 {"ord":1}`, `10 1000000 1 100 {"age":999}`, `10 1000000 1 100 {"age":-60000000}`, `10 1000000 1 100 {"age":86400000001}`,
		`10 1000000 1 100 {"age":1000.5}`, `10 1000000 1 100 {"ttl":999}`, `10 1000000 1 100 {"ttl":-1}`, `10 1000000 1 100 {"ttl":315360000000001}`,
		`10 1000000 1 100 {"ttl":-18446744073709551}`, `10 1000000 1 100 {"ttl":18446744073710551}`, `10 1000000 1 100 {"ttl":"1000"}`,
		`10 1000000 1 100 {"most":1}`, `10 1000000 1 100 {"most":[1]}`, `10 1000000 1 100 {"most":[0,"r"]}`, `10 1000000 1 100 {"most":[-1,"r"]}`,
		`10 1000000 1 100 {"most":[1000000001,"r"]}`, `10 1000000 1 100 {"most":[1,""]}`, `10 1000000 1 100 {"most":[1,"refuse"]}`, `10 1000000 1 100 {"most":[1,null]}`,
		`10 1000000 1 100 {"log":-1}`, `10 1000000 1 100 {"log":1000001}`, `10 1000000 1 100 {"log":1.5}`,
		`10 1000000 1 100 {"keep":999999}`, `10 1000000 1 100 {"keep":-1000000}`, `10 1000000 1 100 {"keep":2592000000001}`,
	} {
		p, err := policyFromText("k", text)
		require.ErrorIs(t, err, errPolicyText, "%q", text)
		require.NotErrorIs(t, err, ErrInvalid, "nobody gave a wrong value")
		require.Equal(t, Policy{Key: "k"}, p)
	}
}

// Another machine may have stored a policy in a zone that this one does not know.
func TestPoliciesInUnknownZonesAreReadBack(t *testing.T) {
	const text = `10 1000000 1 100 {"q":[[1,86400000000,"f","Mars/Olympus"]],"open":["Mars/Olympus",0,10080],"days":["00:00-24:00"]}`
	p, err := policyFromText("k", text)
	require.NoError(t, err)
	require.Equal(t, []string{"Mars/Olympus"}, p.zones())
	require.Equal(t, text, p.text())
	refuses(t, p.Validate(), "quotas[0].zone")
}

func FuzzPolicyText(f *testing.F) {
	f.Add(DefaultPolicy.text())
	f.Add(wholePolicy().text())
	f.Add(`10 1000000 1 100 {"q":[[1,1000000,"s",""]],"up":"\u0000","w":2,"min":[1,1000000]}`)
	f.Add(`10 1000000 1 100 {"open":["",0,120,7200,7320],"days":["fri,sun 22:00-02:00"],"ramp":[1e-300,1000000]}`)
	f.Add(`10 1000000 1 100 {"ord":true,"age":1000,"ttl":1000,"most":[1,"n"],"log":1,"keep":1000000}`)
	f.Add(`10 1000000 1 100 {`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := policyFromText("k", text)
		if err != nil {
			require.ErrorIs(t, err, errPolicyText)
			return
		}
		require.NoError(t, p.validateValues())
		same, err := policyFromText("k", p.text())
		require.NoError(t, err)
		require.Equal(t, p, same)
		require.Equal(t, p.text(), same.text())
		require.NotContains(t, p.text(), "\n")
	})
}
