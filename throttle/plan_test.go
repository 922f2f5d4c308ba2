package throttle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

// A plan foretells what the scripts do.
func TestScriptsKeepToThePlan(t *testing.T) {
	d := drivenRedis(t)
	berlin := "Europe/Berlin"
	start := time.Date(2026, 3, 27, 15, 41, 7, 300_000_000, time.UTC) // a Friday; clocks change on Sunday
	office := &throttle.Hours{Zone: berlin, Open: []throttle.Opening{
		{Days: []time.Weekday{1, 2, 3, 4, 5}, From: 9 * time.Hour, To: 17 * time.Hour},
	}}
	sliding := func(n int64, per time.Duration) throttle.Quota {
		return throttle.Quota{Limit: n, Per: per, Window: throttle.Sliding}
	}
	fixed := func(n int64, per time.Duration) throttle.Quota {
		return throttle.Quota{Limit: n, Per: per, Window: throttle.Fixed}
	}
	for _, c := range []struct {
		policy throttle.Policy
		jobs   int
		cost   int64
	}{
		{throttle.Policy{Limit: limit(t, "100/s", 1)}, 500, 1},
		{throttle.Policy{Limit: limit(t, "7/s", 20)}, 300, 3},
		{throttle.Policy{Limit: limit(t, "10/s", 1), Quotas: []throttle.Quota{fixed(70, time.Minute)}}, 500, 1},
		{throttle.Policy{Limit: limit(t, "10/s", 1), Quotas: []throttle.Quota{sliding(70, time.Minute)}}, 500, 1},
		{throttle.Policy{Limit: limit(t, "10/s", 5), Quotas: []throttle.Quota{sliding(100, time.Minute), fixed(350, 24*time.Hour)}}, 900, 1},
		{throttle.Policy{Limit: limit(t, "10/s", 1), Quotas: []throttle.Quota{sliding(100, time.Minute), sliding(450, time.Hour)}}, 1200, 2},
		{throttle.Policy{Limit: limit(t, "10/s", 10), Quotas: []throttle.Quota{sliding(3, 10*time.Second)}}, 60, 7},
		{throttle.Policy{Limit: limit(t, "10/m", 1), Quotas: []throttle.Quota{{Limit: 100, Per: 24 * time.Hour, Window: throttle.Fixed, Zone: berlin}}}, 300, 1},
		{throttle.Policy{Limit: limit(t, "30/h", 1), Hours: office}, 450, 1},
		{throttle.Policy{Limit: limit(t, "10/s", 1), Hours: office, Quotas: []throttle.Quota{sliding(20, time.Hour)}}, 450, 1},
	} {
		t.Run(fmt.Sprint(c.policy.Limit, c.policy.Quotas), func(t *testing.T) {
			d.reset(t)
			d.zone(t, berlin)
			d.set(t, start)
			c.policy.Key = "*"
			d.policy(t, c.policy)
			s := newSimulation(t, d)
			s.poll = time.Hour
			jobs := entries("k", ids(c.jobs)...)
			for i := range jobs {
				jobs[i].Cost = c.cost
			}
			s.enqueue(jobs...)
			s.drain(60 * 24 * time.Hour)
			slots := s.slots("k", start)
			require.Len(t, slots, c.jobs)
			for i := 0; i < c.jobs; i += 50 {
				plan, err := throttle.Plan(throttle.PlanRequest{
					Policies: []throttle.Policy{c.policy}, Jobs: int64(i + 1), Cost: c.cost, Start: start,
				})
				require.NoError(t, err)
				off := max(250*time.Millisecond, slots[i]/100)
				require.InDelta(t, slots[i], plan.Last.Sub(start), float64(off), "job %d", i)
			}
		})
	}
}

func TestPlanTellsTheLineInTenths(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := throttle.PlanRequest{Policies: []throttle.Policy{{Limit: limit(t, "10/s", 1)}}, Jobs: 100, Start: start}
	plan, err := throttle.Plan(r)
	require.NoError(t, err)
	require.Equal(t, start, plan.First)
	require.Equal(t, start.Add(9900*time.Millisecond), plan.Last)
	require.Len(t, plan.Steps, 11)
	for i, s := range plan.Steps {
		want := start
		if i > 0 {
			want = start.Add(time.Duration(10*i-1) * 100 * time.Millisecond)
		}
		require.Equal(t, throttle.PlanStep{Jobs: int64(10 * i), At: want}, s)
	}

	r.Jobs = 3
	plan, err = throttle.Plan(r)
	require.NoError(t, err)
	require.Equal(t, []throttle.PlanStep{
		{0, start}, {1, start}, {2, start.Add(100 * time.Millisecond)}, {3, start.Add(200 * time.Millisecond)},
	}, plan.Steps)

	r.Jobs = 1
	plan, err = throttle.Plan(r)
	require.NoError(t, err)
	require.Equal(t, plan.First, plan.Last)
	require.Len(t, plan.Steps, 2)
}

// A thousand million jobs take a plan no longer than a few.
func TestPlanOfManyJobs(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		policy throttle.Policy
		want   time.Duration
	}{
		{throttle.Policy{Limit: limit(t, "1000/s", 1)}, 1_000_000 * time.Second},
		{throttle.Policy{Limit: limit(t, "100000/s", 1), Quotas: []throttle.Quota{
			{Limit: 1000, Per: time.Second, Window: throttle.Fixed}, {Limit: 50_000, Per: time.Minute, Window: throttle.Fixed},
			{Limit: 2_000_000, Per: time.Hour, Window: throttle.Fixed}, {Limit: 10_000_000, Per: 24 * time.Hour, Window: throttle.Fixed},
		}}, (99*24+4)*time.Hour + 40*time.Minute},
		{throttle.Policy{Limit: limit(t, "1000/s", 1), Hours: &throttle.Hours{
			Open: []throttle.Opening{{From: 6 * time.Hour, To: 18 * time.Hour}},
		}}, (23*24+6)*time.Hour + 6400*time.Second},
	} {
		plan, err := throttle.Plan(throttle.PlanRequest{Policies: []throttle.Policy{c.policy}, Jobs: throttle.MaxPlanJobs, Start: start})
		require.NoError(t, err)
		require.InEpsilon(t, c.want, plan.Last.Sub(start), 0.005)
	}
}

func TestPlanCountsParentsAndPlacesInFlight(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	child := throttle.Policy{Limit: limit(t, "100/s", 100), MaxInFlight: 5}
	r := throttle.PlanRequest{Policies: []throttle.Policy{child, {Limit: limit(t, "10/s", 1), MaxInFlight: 1}}, Jobs: 1000, Start: start}
	plan, err := throttle.Plan(r)
	require.NoError(t, err)
	require.Equal(t, start.Add(99900*time.Millisecond), plan.Last, "the parent's rate, and not its places")
	r.Run = 2 * time.Second
	plan, err = throttle.Plan(r)
	require.NoError(t, err)
	require.InDelta(t, 400, plan.Last.Sub(start).Seconds(), 4, "five in two seconds")
}

func TestPlanRefuses(t *testing.T) {
	good := throttle.PlanRequest{Policies: []throttle.Policy{{Limit: limit(t, "10/s", 1)}}, Jobs: 1}
	_, err := throttle.Plan(good)
	require.NoError(t, err)
	for field, spoil := range map[string]func(r *throttle.PlanRequest){
		"policies":         func(r *throttle.PlanRequest) { r.Policies = nil },
		"policies[1].rate": func(r *throttle.PlanRequest) { r.Policies = append(r.Policies, throttle.Policy{}) },
		"policies[0].hours.zone": func(r *throttle.PlanRequest) {
			r.Policies = []throttle.Policy{{Limit: r.Policies[0].Limit, Hours: &throttle.Hours{
				Zone: "Nowhere", Open: []throttle.Opening{{To: time.Hour}},
			}}}
		},
		"jobs":  func(r *throttle.PlanRequest) { r.Jobs = throttle.MaxPlanJobs + 1 },
		"cost":  func(r *throttle.PlanRequest) { r.Cost = -1 },
		"start": func(r *throttle.PlanRequest) { r.Start = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC) },
		"run":   func(r *throttle.PlanRequest) { r.Run = -1 },
	} {
		r := good
		spoil(&r)
		_, err := throttle.Plan(r)
		var invalid *throttle.InvalidError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
	}
}

func ExamplePlan() {
	plan, err := throttle.Plan(throttle.PlanRequest{
		Policies: []throttle.Policy{{
			Limit:  throttle.Limit{Rate: 10, Period: time.Second, Burst: 1},
			Quotas: []throttle.Quota{{Limit: 1000, Per: 24 * time.Hour, Window: throttle.Fixed}},
		}},
		Jobs:  2500,
		Start: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC),
	})
	if err != nil {
		panic(err)
	}
	for _, s := range plan.Steps[7:] {
		fmt.Println(s.Jobs, s.At.Format(time.DateTime))
	}
	// Output:
	// 1750 2026-03-03 00:01:14
	// 2000 2026-03-03 00:01:39
	// 2250 2026-03-04 00:00:24
	// 2500 2026-03-04 00:00:49
}
