package throttle

import (
	"fmt"
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
		if more := append(quotas, q); (Policy{Quotas: more}).validateQuotas() == nil {
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
	mixed := rapid.IntRange(0, 3).Draw(t, "mixed") == 0
	for i := range costs {
		costs[i] = cost
		if mixed {
			costs[i] = 1 + int64(i)*7919%cost
		}
	}
	return costs
}

// agree compares the forecasts of a whole line, taken one by one or only every so many
// jobs, with what the oracle does with it. They are off by 1 % of the wait or 250 ms at
// most. Where hours end, a job more or less is a night: there it may be what happens to 1 %
// of the line before it or after.
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
			if x := float64(at - o.now); x < from-off || x > to+off {
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
				agree(t, newOracle(o), o, costs, 1)
			})
		})
	}
}

func TestForecastOfAFamilyHoldsTheLimitsOfAllItsLevels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var policies []Policy
		for range rapid.IntRange(2, MaxLevels).Draw(t, "levels") {
			s := some{quotas: rapid.Bool().Draw(t, "with quotas"), hours: rapid.IntRange(0, 3).Draw(t, "with hours") == 0}
			policies = append(policies, s.draw(t))
		}
		o, costs := idle(policies...), drawCosts(t)
		agree(t, newOracle(o), o, costs, 1)
	})
}

func TestForecastGoesOnFromWhereALineStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := idle(some{quotas: true, hours: rapid.Bool().Draw(t, "with hours"), ramp: rapid.Bool().Draw(t, "with a ramp")}.draw(t))
		or := newOracle(o)
		for range rapid.IntRange(1, 300).Draw(t, "gone") {
			or.depart(rapid.Int64Range(1, 3).Draw(t, "cost"))
		}
	})
}
