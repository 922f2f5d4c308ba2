package throttle

import (
	"testing"
	"time"
)

var plainPolicy = Policy{Limit: Limit{Rate: 100, Period: time.Second, Burst: 5}}

// exoticPolicy has all that makes a forecast step through time.
var exoticPolicy = Policy{
	Limit: Limit{Rate: 20, Period: time.Second, Burst: 10},
	Quotas: []Quota{
		{Limit: 15, Per: time.Second, Window: Sliding},
		{Limit: 500, Per: time.Minute, Window: Fixed},
		{Limit: 7000, Per: time.Hour, Window: Sliding},
		{Limit: 30_000, Per: day, Window: Fixed, Zone: "Europe/Berlin"},
		{Limit: 400_000, Per: 30 * day, Window: Sliding},
	},
	Hours: &Hours{Zone: "America/New_York", Open: []Opening{
		{Days: []time.Weekday{1, 2, 3, 4, 5}, From: 8 * time.Hour, To: 12 * time.Hour},
		{Days: []time.Weekday{1, 2, 3, 4, 5}, From: 13 * time.Hour, To: 18 * time.Hour},
	}},
	Ramp: &Ramp{From: 0.1, Over: time.Hour},
}

// The line of a rate alone, job by job, from one forecast.
func BenchmarkForecastOfEachJobOfAPlainLine(b *testing.B) {
	o := idle(plainPolicy, plainPolicy)
	f, n := newForecast(o), int64(0)
	b.ReportAllocs()
	for b.Loop() {
		f.departure(float64(n), n, 1)
		n++
	}
}

// A forecast for one job, as a receipt has it.
func BenchmarkForecastOfOneJob(b *testing.B) {
	for _, c := range []struct {
		name string
		o    outlook
		jobs int64
	}{
		{"plain", idle(plainPolicy), 1_000_000},
		{"quotas, 10 ahead", idle(Policy{Limit: plainPolicy.Limit, Quotas: exoticPolicy.Quotas}), 10},
		{"quotas, 1000000 ahead", idle(Policy{Limit: plainPolicy.Limit, Quotas: exoticPolicy.Quotas}), 1_000_000},
		{"exotic, 10 ahead", ramping(exoticPolicy), 10},
		{"exotic, 1000 ahead", ramping(exoticPolicy), 1000},
		{"exotic, 1000000 ahead", ramping(exoticPolicy), 1_000_000},
		{"exotic, 1000000000 ahead", ramping(exoticPolicy), 1_000_000_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				newForecast(c.o).departure(float64(c.jobs), c.jobs, 1)
			}
		})
	}
}

func ramping(p Policy) outlook {
	o := idle(p)
	o.stages[0].ramped = o.now
	return o
}
