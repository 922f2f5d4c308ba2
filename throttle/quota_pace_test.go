package throttle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
)

// zone stores the offsets of a time zone.
func (d *driven) zone(t require.TestingT, name string) *time.Location {
	offsets, err := throttle.ZoneOffsets(name)
	require.NoError(t, err)
	d.run(t, d.scripts.Zone(0, name, offsets))
	location, err := time.LoadLocation(name)
	require.NoError(t, err)
	return location
}

// mostWithin is the highest cost of departures in a closed window shorter than per.
func (s *simulation) mostWithin(key string, per time.Duration) (most int64) {
	var within []departure
	var sum int64
	for _, d := range s.departures {
		if d.Key != key {
			continue
		}
		within = append(within, d)
		sum += d.Cost
		for d.At.Sub(within[0].At) >= per {
			sum -= within[0].Cost
			within = within[1:]
		}
		most = max(most, sum)
	}
	return most
}

// perDay is the cost that left on each day of a zone.
func (s *simulation) perDay(key string, zone *time.Location) map[string]int64 {
	days := make(map[string]int64)
	for _, d := range s.departures {
		if d.Key == key {
			days[d.At.In(zone).Format(time.DateOnly)] += d.Cost
		}
	}
	return days
}

// Three limits on one key: each holds in every window, and each is used where it is the
// tightest.
func TestQuotasHoldBesideTheRate(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		perMinute, perDay := 100, 1000
		if d.mini != nil {
			perMinute, perDay = 10, 50
		}
		d.set(t, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
		l := limit(t, "10/s", 1)
		d.policy(t, throttle.Policy{Key: "*", Limit: l, Quotas: []throttle.Quota{
			{Limit: int64(perMinute), Per: time.Minute, Window: throttle.Sliding},
			{Limit: int64(perDay), Per: 24 * time.Hour, Window: throttle.Fixed},
		}})
		s := newSimulation(t, d)
		s.poll = time.Hour
		s.enqueue(entries("k", ids(5*perDay/2)...)...)
		from := s.now
		s.forward(48*time.Hour - time.Second)

		require.Equal(t, map[string]int64{"2026-03-01": int64(perDay), "2026-03-02": int64(perDay)}, s.perDay("k", time.UTC))
		require.EqualValues(t, perMinute, s.mostWithin("k", time.Minute))
		s.keepsLimit(l, "k")
		slots := s.slots("k", from)
		require.Less(t, slots[perMinute-1], 10*time.Second, "the rate is the tightest at first")
		for day := range 2 {
			begun, ended := slots[day*perDay], slots[(day+1)*perDay-perMinute]
			used := float64(perDay-perMinute) / (float64(perMinute) * (ended - begun).Minutes())
			require.GreaterOrEqual(t, used, 0.99, "of the sliding minute, on day %d", day+1)
		}
		require.InDelta(t, 24*time.Hour, slots[perDay], float64(time.Second), "the second day begins at midnight")
	})
}

// What a job that leaves late may do to a window is allowed for: a slot never lies so
// close to an edge that being late would count it elsewhere.
func TestLateDeparturesStayWithinQuotas(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		checks(t, d.few(20))
		rapid.Check(t, func(t *rapid.T) {
			d.reset(t)
			per := rapid.SampledFrom([]time.Duration{2 * time.Second, 10 * time.Second, time.Minute}).Draw(t, "per")
			window := rapid.SampledFrom([]throttle.Window{throttle.Sliding, throttle.Fixed}).Draw(t, "window")
			quota := rapid.Int64Range(1, 40).Draw(t, "quota")
			l := throttle.Limit{Rate: rapid.Int64Range(1, 100).Draw(t, "rate"), Period: time.Second, Burst: 1}
			d.policy(t, throttle.Policy{Key: "*", Limit: l, Quotas: []throttle.Quota{{Limit: quota, Per: per, Window: window}}})
			s := newSimulation(t, d)
			jobs := entries("k", ids(60)...)
			costs := rapid.SliceOfN(rapid.Int64Range(1, min(5, quota)), 60, 60).Draw(t, "costs")
			for i := range jobs {
				jobs[i].Cost = costs[i]
			}
			s.enqueue(jobs...)
			s.drain(time.Hour)
			late := min(time.Second, max(2*time.Millisecond, 8*l.Interval()/10))
			for i := range s.departures {
				s.departures[i].At = s.departures[i].At.Add(time.Duration(rapid.Int64Range(0, int64(late)).Draw(t, "late")))
			}
			if window == throttle.Sliding {
				require.LessOrEqual(t, s.mostWithin("k", per), quota)
				return
			}
			sums := make(map[int64]int64)
			for _, dep := range s.departures {
				id := dep.At.UnixMicro() / per.Microseconds()
				sums[id] += dep.Cost
				require.LessOrEqual(t, sums[id], quota)
			}
		})
	})
}

// A day of a zone is as long as it is there: 23 and 25 hours when the clocks change.
func TestDailyQuotaFollowsTheZonesMidnight(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		for _, c := range []struct{ zone, from string }{
			{"Europe/Berlin", "2026-03-27"},    // to summer time on the 29th
			{"Europe/Berlin", "2026-10-23"},    // and back on the 25th of October
			{"Africa/Cairo", "2026-04-22"},     // midnight of the 24th does not exist
			{"Africa/Cairo", "2026-10-28"},     // and that of the 30th comes twice
			{"America/New_York", "2026-11-30"}, // no change
			{"Asia/Kathmandu", "2026-05-01"},   // a quarter of an hour off
		} {
			t.Run(c.zone+" "+c.from, func(t *testing.T) {
				d.reset(t)
				zone := d.zone(t, c.zone)
				from, err := time.ParseInLocation(time.DateOnly, c.from, zone)
				require.NoError(t, err)
				d.set(t, from.Add(time.Hour))
				d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "10/m", 1), Quotas: []throttle.Quota{
					{Limit: 5, Per: 24 * time.Hour, Window: throttle.Fixed, Zone: c.zone},
				}})
				s := newSimulation(t, d)
				s.poll = time.Hour
				s.enqueue(entries("k", ids(40)...)...)
				s.forward(6 * 24 * time.Hour)
				days := s.perDay("k", zone)
				for day := range 6 {
					date := from.AddDate(0, 0, day).Format(time.DateOnly)
					require.EqualValues(t, 5, days[date], "on %s: %v", date, days)
				}
			})
		}
	})
}

func TestChangedQuotaCountsWhatLeftUnderTheOldOne(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.set(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
		with := func(n int64, w throttle.Window) throttle.Policy {
			return throttle.Policy{Key: "*", Limit: limit(t, "100/s", 100), Quotas: []throttle.Quota{{Limit: n, Per: time.Hour, Window: w}}}
		}
		for _, w := range []throttle.Window{throttle.Fixed, throttle.Sliding} {
			t.Run(string(w), func(t *testing.T) {
				d.reset(t)
				d.set(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
				d.policy(t, with(10, w))
				s := newSimulation(t, d)
				s.enqueue(entries("k", ids(50)...)...)
				s.forward(20 * time.Minute)
				require.Len(t, s.departures, 10)
				s.call(d.policies("*", throttle.PolicyText(with(20, w))))
				s.forward(20 * time.Minute)
				require.Len(t, s.departures, 20, "ten more")
				s.call(d.policies("*", throttle.PolicyText(with(15, w))))
				s.forward(15 * time.Minute)
				require.Len(t, s.departures, 20, "more left than is allowed now")
			})
		}
	})
}

// A refusal by one quota charges none of the others, nor the bucket.
func TestRefusalChargesNothing(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "100/s", 50), Quotas: []throttle.Quota{
			{Limit: 1000, Per: time.Hour, Window: throttle.Fixed},
			{Limit: 3, Per: time.Hour, Window: throttle.Sliding},
		}})
		d.run(t, d.scripts.Enqueue(0, -1, entries("k", "1", "2", "3")))
		jobs := holds(released(d.run(t, d.scripts.Release(0, releasing("1")))))
		require.Len(t, jobs, 3)
		d.run(t, d.scripts.Enqueue(0, -1, entries("k", "4", "5")))
		require.Empty(t, released(d.run(t, d.scripts.Release(0, releasing("2")))), "what is out is counted")
		d.run(t, d.scripts.Depart(0, lead, lease, "1", jobs))
		// A lower quota refuses those that are on their way already.
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "100/s", 50), Quotas: []throttle.Quota{
			{Limit: 1000, Per: time.Hour, Window: throttle.Fixed},
			{Limit: 4, Per: time.Hour, Window: throttle.Sliding},
		}})
		more := holds(released(d.run(t, d.scripts.Release(0, releasing("3")))))
		require.Len(t, more, 1)
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "100/s", 50), Quotas: []throttle.Quota{
			{Limit: 1000, Per: time.Hour, Window: throttle.Fixed},
			{Limit: 3, Per: time.Hour, Window: throttle.Sliding},
		}})
		before := d.run(t, d.scripts.Stat(0, "k")).Counts()
		fields := d.client.HGetAll(t.Context(), name("b", "k")).Val()
		_, slots := d.run(t, d.scripts.Depart(0, lead, lease, "2", more)).Slots()
		require.Equal(t, script.Parked, slots[0].Status)
		after := d.run(t, d.scripts.Stat(0, "k")).Counts()
		require.Equal(t, before.MicroLevel, after.MicroLevel)
		now := d.client.HGetAll(t.Context(), name("b", "k")).Val()
		for field, text := range fields {
			if field[0] == 'q' {
				require.Equal(t, text, now[field], field)
			}
		}
	})
}

// A job dearer than a quota leaves when nothing else is counted and takes up windows to
// come: it waits for long, but not forever, and the quota holds over time.
func TestJobDearerThanAQuotaTakesUpWindowsToCome(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		for _, w := range []throttle.Window{throttle.Fixed, throttle.Sliding} {
			t.Run(string(w), func(t *testing.T) {
				d.reset(t)
				d.set(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
				d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "100/s", 100), Quotas: []throttle.Quota{{Limit: 10, Per: time.Minute, Window: w}}})
				s := newSimulation(t, d)
				jobs := entries("k", "1", "2", "3")
				jobs[0].Cost, jobs[1].Cost, jobs[2].Cost = 5, 35, 5
				s.enqueue(jobs...)
				from := s.now
				s.drain(time.Hour)
				slots := s.slots("k", from)
				require.InDelta(t, time.Minute, slots[1], float64(time.Second))
				require.InDelta(t, 4*time.Minute, slots[2], float64(time.Second), "35 take three windows and a half")
			})
		}
	})
}

// A key that goes idle keeps what its quotas count, and nothing beyond their windows.
func TestIdleKeyKeepsItsQuotasUntilTheirWindowsEnd(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.set(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "100/s", 100), Quotas: []throttle.Quota{
			{Limit: 3, Per: time.Minute, Window: throttle.Sliding}, {Limit: 5, Per: time.Hour, Window: throttle.Fixed},
		}})
		s := newSimulation(t, d)
		from := s.now
		for i := range 6 {
			s.enqueue(entries("k", fmt.Sprint(i))...)
			s.forward(10 * time.Second)
		}
		s.drain(2 * time.Hour)
		slots := s.slots("k", from)
		require.Len(t, slots, 6)
		require.InDelta(t, time.Minute, slots[3], float64(time.Second), "three left in the first minute")
		require.InDelta(t, time.Hour, slots[5], float64(time.Second), "five left in the hour")
		d.set(t, s.now.Add(2*time.Hour))
		require.ElementsMatch(t, []string{
			script.ShardName(0) + "clock", script.ShardName(0) + "file", script.ShardName(0) + "version", script.ShardName(0) + "sweep",
		}, append(withoutReplies(d.names(t)), script.ShardName(0)+"sweep"))
	})
}

// A receipt counts the windows that the jobs ahead take up, once.
func TestEstimatesBehindQuotasAreTrue(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		for _, w := range []throttle.Window{throttle.Sliding, throttle.Fixed} {
			t.Run(string(w), func(t *testing.T) {
				d.reset(t)
				d.set(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
				d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "10/s", 1), Quotas: []throttle.Quota{{Limit: 3, Per: 10 * time.Second, Window: w}}})
				s := newSimulation(t, d)
				jobs := numbered("k", 10)
				receipts, err := d.queue(t).EnqueueMany(t.Context(), jobs)
				require.NoError(t, err)
				s.open = 10
				from := s.now
				s.drain(time.Minute)
				for i, at := range s.slots("k", from) {
					require.InDelta(t, at.Seconds(), receipts[i].EstimatedDeparture.Sub(from).Seconds(), 0.25, "job %d", i+1)
				}
			})
		}
	})
}
