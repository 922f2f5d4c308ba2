package throttle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var idleAt = time.Date(2026, 3, 26, 13, 37, 11, 123456000, time.UTC).UnixMicro()

// idle is a key and its parents of which nothing is known to have left.
func idle(policies ...Policy) outlook {
	o := outlook{now: idleAt}
	for _, p := range policies {
		o.stages = append(o.stages, stage{policy: p.WithDefaults(), share: 1})
	}
	return o
}

func us(d time.Duration) int64 { return d.Microseconds() }

// told is an outlook in few words.
func told(o outlook) string {
	text := ""
	for _, s := range o.stages {
		text += fmt.Sprintf("[%v", s.policy.Limit)
		for _, q := range s.policy.Quotas {
			text += fmt.Sprintf(", %v", q)
		}
		if h := s.policy.Hours; h != nil {
			text += fmt.Sprintf(", %v %v", h.Zone, h.Open)
		}
		if r := s.policy.Ramp; r != nil {
			text += fmt.Sprintf(", ramp %v over %v", r.From, r.Over)
		}
		text += fmt.Sprintf(", level %v, cool %v, ramped %v, %v x %v]", s.level, s.cool, s.ramped, s.flight, s.run)
	}
	return text
}

// some are the kinds of limits that a random policy has.
type some struct{ quotas, hours, ramp bool }

func (s some) draw(t *rapid.T) Policy {
	p := Policy{Limit: Limit{
		Rate: rapid.Int64Range(1, 50).Draw(t, "rate"),
		Period: rapid.SampledFrom([]time.Duration{
			100 * time.Millisecond, time.Second, time.Second, 10 * time.Second, time.Minute, 7 * time.Minute,
		}).Draw(t, "period"),
		Burst: rapid.SampledFrom([]int64{1, 1, 2, 5, 50}).Draw(t, "burst"),
	}}
	if s.quotas {
		p.Quotas = drawQuotas(t)
	}
	if s.hours {
		p.Hours = drawHours(t)
	}
	if s.ramp {
		p.Ramp = &Ramp{
			From: rapid.Float64Range(0.01, 0.9).Draw(t, "fraction"),
			Over: rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour, day}).Draw(t, "over"),
		}
	}
	return p
}

func drawQuotas(t *rapid.T) (quotas []Quota) {
	for range rapid.IntRange(1, 3).Draw(t, "quotas") {
		q := Quota{
			Limit: rapid.Int64Range(1, 300).Draw(t, "limit"),
			Per: rapid.SampledFrom([]time.Duration{
				time.Second, 5 * time.Second, time.Minute, 7 * time.Minute, time.Hour, 5 * time.Hour, day, 3 * day, 30 * day,
			}).Draw(t, "per"),
			Window: rapid.SampledFrom([]Window{Fixed, Sliding}).Draw(t, "window"),
		}
		if q.Per == day && q.Window == Fixed {
			q.Zone = rapid.SampledFrom([]string{"", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"}).Draw(t, "zone")
		}
		more := append(slices.Clone(quotas), q)
		if (Policy{Quotas: more}).validateQuotas() == nil {
			quotas = more
		}
	}
	return quotas
}

func drawHours(t *rapid.T) *Hours {
	h := &Hours{Zone: rapid.SampledFrom([]string{"", "Europe/Berlin", "America/New_York"}).Draw(t, "zone")}
	for range rapid.IntRange(1, 3).Draw(t, "openings") {
		from := rapid.IntRange(0, minutesPerDay-1).Draw(t, "from")
		to := (from + rapid.SampledFrom([]int{1, 10, 60, 480, 1200, 1440}).Draw(t, "length")) % minutesPerDay
		if to == from {
			from, to = 0, minutesPerDay
		}
		o := Opening{From: time.Duration(from) * time.Minute, To: time.Duration(to) * time.Minute}
		for d := range time.Weekday(7) {
			if rapid.Bool().Draw(t, "day") {
				o.Days = append(o.Days, d)
			}
		}
		h.Open = append(h.Open, o)
	}
	return h
}

// drawCosts are those of a line of jobs.
func drawCosts(t *rapid.T) []int64 {
	costs := make([]int64, rapid.SampledFrom([]int{10, 100, 1000, 3000}).Draw(t, "jobs"))
	cost := rapid.SampledFrom([]int64{1, 1, 1, 2, 3, 7}).Draw(t, "cost")
	for i := range costs {
		costs[i] = cost
	}
	return costs
}

// drawMixed are costs of which a forecast only knows the mean where it is not asked for each.
func drawMixed(t *rapid.T) []int64 {
	return rapid.SliceOfN(rapid.Int64Range(1, 9), 1, 300).Draw(t, "costs")
}

// agree compares the forecasts of a whole line, taken one by one or only every so many
// jobs, with what the oracle does with it. They are off by 1 % of the wait or 250 ms at
// most. Where hours end, a job more or less is a night: there it may be what happens to 1 %
// of the line before it or after. And what is within a rounding of a guard before an edge may
// be taken to either side of it, if that is rare.
func agree(t require.TestingT, or *oracle, o outlook, costs []int64, every int) {
	var real []float64
	for _, cost := range costs {
		real = append(real, or.depart(float64(cost))-float64(o.now))
		if real[len(real)-1] > forever {
			break
		}
	}
	f := newForecast(o)
	hours := len(f.calendars) > 0
	guard, slips := 0.0, 0
	for _, s := range or.stages {
		guard = max(guard, s.guard)
	}
	ahead := 0.0
	for i, wait := range real {
		if i%every == 0 {
			at, known := f.departure(ahead, int64(i), costs[i])
			require.True(t, known)
			from, to := wait, wait
			if hours {
				from, to = real[max(0, i-1-i/100)], real[min(i+1+i/100, len(real)-1)]
			}
			off := max(0.01*wait, 250e3)
			x := float64(at - o.now)
			if x < from-off || x > to+off {
				slips++
			}
			if x < from-off-guard || x > to+off+guard || slips > 5+i/100 {
				require.Fail(t, "wrong", "job %d of cost %d of %v leaves after %v, and not %v", i, costs[i], told(o),
					time.Duration(wait)*time.Microsecond, time.Duration(x)*time.Microsecond)
			}
		}
		ahead += float64(costs[i])
	}
}

func TestForecastOfAnIdleKeyIsWhatTheDefinitionsOfItsLimitsLeadTo(t *testing.T) {
	for _, c := range []struct {
		name string
		some some
	}{
		{"rate", some{}},
		{"quotas", some{quotas: true}},
		{"hours", some{hours: true}},
		{"hours and quotas", some{hours: true, quotas: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				o, costs := idle(c.some.draw(t)), drawCosts(t)
				agree(t, newOracle(o), o, costs, rapid.SampledFrom([]int{1, 50}).Draw(t, "every"))
			})
		})
	}
}

func TestForecastsOfALineKnowWhatEachJobCosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := idle(some{quotas: true, hours: rapid.Bool().Draw(t, "with hours")}.draw(t))
		agree(t, newOracle(o), o, drawMixed(t), 1)
	})
}

func TestForecastOfAFamilyHoldsTheLimitsOfAllItsLevels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var policies []Policy
		hours := rapid.IntRange(0, 4*MaxLevels).Draw(t, "hours of") // of two, they may never be open at once
		for i := range rapid.IntRange(2, MaxLevels).Draw(t, "levels") {
			s := some{quotas: rapid.Bool().Draw(t, "with quotas"), hours: i == hours}
			policies = append(policies, s.draw(t))
		}
		o, costs := idle(policies...), drawCosts(t)
		agree(t, newOracle(o), o, costs, 1)
	})
}

// What has left is taken over, and with it a cool-down and the ramp after it.
func TestForecastGoesOnFromWhereALineStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := some{quotas: true, hours: rapid.Bool().Draw(t, "with hours"), ramp: rapid.Bool().Draw(t, "with a ramp")}
		or := newOracle(idle(kind.draw(t)))
		for range rapid.IntRange(0, 300).Draw(t, "gone") {
			or.depart(3)
		}
		o := or.outlook()
		s, held := &o.stages[0], or.stages[0]
		if rapid.Bool().Draw(t, "cools down") {
			s.cool = o.now + us(rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour, 50 * time.Hour}).Draw(t, "for"))
		}
		if kind.ramp && rapid.Bool().Draw(t, "ramps") {
			s.ramped = max(s.cool, o.now-us(time.Duration(rapid.Int64Range(0, int64(2*s.policy.Ramp.Over)).Draw(t, "since"))))
		}
		or.last, held.cool, held.ramped = float64(o.now), float64(s.cool), float64(s.ramped)
		agree(t, or, o, drawCosts(t), rapid.SampledFrom([]int{1, 50}).Draw(t, "every"))
	})
}

// What has been released leaves first, and takes what others could have had.
func TestWhatIsOutLeavesFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := idle(some{quotas: true}.draw(t))
		or := newOracle(o)
		out := rapid.IntRange(1, 20).Draw(t, "out")
		for range out {
			or.depart(1)
		}
		o.stages[0].out = float64(out)
		real, f := or.depart(1)-float64(o.now), newForecast(o)
		at, _ := f.departure(0, 0, 1)
		// That it leaves now is close enough: it is out because it would have in a lead.
		gone := real * float64(out) / float64(out+1)
		require.LessOrEqual(t, float64(at-o.now), real+max(0.01*real, 250e3), told(o))
		require.GreaterOrEqual(t, float64(at-o.now), real-gone-max(0.01*real, 250e3), told(o))
	})
}

func TestPlacesInFlightHoldALineWhoseRunsTakeLong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := some{quotas: rapid.Bool().Draw(t, "with quotas")}.draw(t)
		p.MaxInFlight = rapid.IntRange(1, 30).Draw(t, "places")
		o := idle(p)
		s := &o.stages[0]
		s.run = rapid.SampledFrom([]time.Duration{time.Microsecond, 10 * time.Millisecond, time.Second, time.Minute, time.Hour}).Draw(t, "run")
		s.flight = int64(rapid.IntRange(0, p.MaxInFlight).Draw(t, "flight"))
		agree(t, newOracle(o), o, drawCosts(t), rapid.SampledFrom([]int{1, 50}).Draw(t, "every"))
	})
}

func TestAnOrderedLineHasOnePlaceInFlight(t *testing.T) {
	o := idle(Policy{Limit: Limit{Rate: 1000, Period: time.Second, Burst: 1000}, Ordered: true})
	o.stages[0].run, o.stages[0].flight = 3*time.Second, 1
	at, known := newForecast(o).departure(9, 9, 1)
	require.True(t, known)
	require.InDelta(t, 30, float64(at-o.now)/1e6, 0.01)
}

func TestOnlyAnEventEndsAPause(t *testing.T) {
	child := Policy{Limit: Limit{Rate: 1, Period: time.Second, Burst: 1}}
	for paused := range 2 {
		o := idle(child, child)
		o.stages[paused].paused = true
		_, known := newForecast(o).departure(0, 0, 1)
		require.False(t, known)
	}
}

// A child that shares its parent with others leaves in its turns.
func TestForecastOfAChildGoesByItsShare(t *testing.T) {
	const siblings = 4
	free := Limit{Rate: 1000, Period: time.Second, Burst: 1000}
	for _, c := range []struct {
		parent Policy
		perJob time.Duration // of each child
	}{
		{Policy{Limit: Limit{Rate: 10, Period: time.Second, Burst: 1}}, 400 * time.Millisecond},
		{Policy{Limit: Limit{Rate: 3, Period: time.Second, Burst: 2}}, 4 * time.Second / 3},
		{Policy{Limit: free, Quotas: []Quota{{Limit: 2, Per: time.Minute, Window: Fixed}}}, 2 * time.Minute},
		{Policy{Limit: free, Quotas: []Quota{{Limit: 2, Per: time.Minute, Window: Sliding}}}, 2 * time.Minute},
		{Policy{Limit: free, Quotas: []Quota{{Limit: 400, Per: time.Minute, Window: Fixed}}}, 600 * time.Millisecond},
		{Policy{Limit: free, Quotas: []Quota{{Limit: 400, Per: time.Minute, Window: Sliding}}}, 600 * time.Millisecond},
	} {
		o := idle(Policy{Limit: free}, c.parent)
		o.stages[1].share = 1. / siblings
		f := newForecast(o)
		for _, n := range []int64{0, 1, 10, 100, 1000, 10_000} {
			at, _ := f.departure(float64(n), n, 1)
			want := time.Duration(n) * c.perJob
			window := time.Duration(0)
			for _, q := range c.parent.Quotas {
				window = q.Per
			}
			require.InDelta(t, want.Seconds(), float64(at-o.now)/1e6, 0.01*want.Seconds()+max(c.perJob, window).Seconds(), "%v job %d", told(o), n)
		}
	}
}

// Calls for the jobs of a line in turn tell what a call for each alone would.
func TestABatchOfForecastsIsWhatEachIsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := idle(some{quotas: true, hours: rapid.Bool().Draw(t, "with hours")}.draw(t))
		f := newForecast(o)
		last := int64(0)
		for n := int64(0); n < 3000; n += rapid.Int64Range(0, 300).Draw(t, "further") + 1 {
			at, _ := f.departure(float64(n), n, 1)
			alone, _ := newForecast(o).departure(float64(n), n, 1)
			require.InDelta(t, alone, at, max(100, 0.01*float64(at-o.now)), "job %d of %s", n, told(o))
			require.GreaterOrEqual(t, at, last)
			last = at
		}
	})
}

// A rate needs no approximation.
func TestForecastBehindARateIsExact(t *testing.T) {
	for _, l := range []Limit{
		{Rate: 100, Period: time.Second, Burst: 1}, {Rate: 7, Period: time.Minute, Burst: 20}, {Rate: 1, Period: day, Burst: 3},
		{Rate: 999_999_999, Period: time.Second, Burst: 1}, {Rate: 3, Period: time.Millisecond, Burst: 1000},
	} {
		for _, cost := range []int64{1, 5, 2000} {
			for _, n := range []int64{0, 1, 2, 19, 20, 21, 1000, 1_000_000} {
				o := idle(Policy{Limit: l})
				at, known := newForecast(o).departure(float64(n*cost), n, cost)
				require.True(t, known)
				over := float64(n*cost) - float64(max(0, l.Burst-cost))
				want := max(0, over*float64(l.Period.Microseconds())/float64(l.Rate))
				require.InDelta(t, min(want, forever), at-o.now, 1+want*1e-12, "%v, job %d of cost %d", l, n, cost)
			}
		}
	}
}

func TestNoForecastIsBeyondWhatStandsForForever(t *testing.T) {
	slow := Limit{Rate: 1, Period: MaxPeriod, Burst: 1}
	fast := Limit{Rate: MaxRate, Period: MinPeriod, Burst: MaxBurst}
	for _, p := range []Policy{
		{Limit: slow},
		{Limit: slow, Quotas: []Quota{{Limit: 1, Per: MaxQuotaPeriod}}},
		{Limit: fast, Quotas: []Quota{{Limit: 1, Per: MaxQuotaPeriod, Window: Sliding}, {Limit: 1, Per: time.Second, Window: Fixed}}},
		{Limit: fast, Quotas: []Quota{{Limit: 1, Per: MaxQuotaPeriod, Window: Fixed}, {Limit: 1, Per: day, Window: Fixed, Zone: "Europe/Berlin"}}},
		{Limit: slow, Hours: &Hours{Zone: "Africa/Cairo", Open: []Opening{{Days: []time.Weekday{3}, From: time.Hour, To: time.Hour + time.Minute}}}},
		{Limit: slow, Ramp: &Ramp{From: 1e-300, Over: MaxRamp}},
	} {
		for _, cost := range []int64{1, MaxCost} {
			for _, n := range []int64{1000, MaxPlanJobs, 1 << 62} {
				o := idle(p, p)
				o.stages[0].ramped = o.now
				f := newForecast(o)
				for range 2 {
					at, known := f.departure(float64(n)*float64(cost), n, cost)
					require.True(t, known)
					require.Equal(t, o.now+us(MaxWait), at, "%v, %d jobs of cost %d", told(o), n, cost)
				}
			}
		}
	}
}

// What is read from Redis may be anything.
func TestForecastSurvivesADamagedOutlook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.SampledFrom([]float64{0, 1, -1, 0.5, 1e-300, 1e15, -1e15, 1e300, 3})
		instant := rapid.SampledFrom([]int64{0, 1, -1, 1 << 53, -1 << 53, idleAt, idleAt + 1e9, idleAt - 1e9})
		o := idle(some{true, true, true}.draw(t), some{quotas: true}.draw(t))
		o.now = rapid.SampledFrom([]int64{0, idleAt, -idleAt, 1 << 52}).Draw(t, "now")
		for i := range o.stages {
			s := &o.stages[i]
			s.level, s.out, s.share = number.Draw(t, "level"), number.Draw(t, "out"), number.Draw(t, "share")
			s.cool, s.ramped = instant.Draw(t, "cool"), instant.Draw(t, "ramped")
			s.flight, s.run = instant.Draw(t, "flight"), time.Duration(instant.Draw(t, "run"))
			for range s.policy.Quotas {
				c := counted{window: instant.Draw(t, "window"), used: number.Draw(t, "used")}
				for range rapid.IntRange(0, 3).Draw(t, "points") {
					c.log = append(c.log, loggedCost{instant.Draw(t, "point"), number.Draw(t, "part")})
				}
				s.quotas = append(s.quotas, c)
			}
		}
		f := newForecast(o)
		for n := range int64(20) {
			at, known := f.departure(float64(n*n), n*n, 1+n)
			require.True(t, known)
			require.GreaterOrEqual(t, at, o.now)
			require.LessOrEqual(t, at, o.now+us(MaxWait))
		}
	})
}

// Where one level is only open when another is not, nothing ever leaves.
func TestHoursThatNeverOverlapAreForever(t *testing.T) {
	on := func(d time.Weekday) Policy {
		o := Opening{Days: []time.Weekday{d}, From: time.Hour, To: 2 * time.Hour}
		return Policy{Limit: Limit{Rate: 1, Period: time.Second, Burst: 1}, Hours: &Hours{Open: []Opening{o}}}
	}
	o := idle(on(time.Monday), on(time.Tuesday))
	at, known := newForecast(o).departure(0, 0, 1)
	require.True(t, known)
	require.Equal(t, o.now+us(MaxWait), at)
}
