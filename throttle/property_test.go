package throttle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
)

func drawLimit(t *rapid.T) throttle.Limit {
	return throttle.Limit{
		Rate:   rapid.SampledFrom([]int64{1, 3, 7, 10, 64, 999, 5000}).Draw(t, "rate"),
		Period: rapid.SampledFrom([]time.Duration{time.Second, 1234567 * time.Microsecond, time.Minute}).Draw(t, "period"),
		Burst:  rapid.SampledFrom([]int64{1, 2, 5, 20, 100}).Draw(t, "burst"),
	}
}

func drawJobs(t *rapid.T, key string, maxCost int64) []script.Entry {
	jobs := entries(key, ids(rapid.IntRange(1, 60).Draw(t, "jobs"))...)
	for i := range jobs {
		jobs[i].Cost = rapid.Int64Range(1, maxCost).Draw(t, "cost")
		if rapid.IntRange(0, 3).Draw(t, "urgent") == 0 {
			jobs[i].More = &script.More{Priority: rapid.IntRange(1, 9).Draw(t, "priority")}
		}
	}
	return jobs
}

func priority(e script.Entry) int {
	if e.More == nil {
		return 0
	}
	return e.More.Priority
}

// span is how long a cost takes to leak.
func span(l throttle.Limit, cost int64) time.Duration {
	return time.Duration(float64(cost) * float64(l.Period) / float64(l.Rate))
}

func between(t *rapid.T, low, high time.Duration) func() time.Duration {
	return func() time.Duration {
		return time.Duration(rapid.Int64Range(low.Microseconds(), high.Microseconds()).Draw(t, "time")) * time.Microsecond
	}
}

func drawnSimulation(t *rapid.T, d *driven, l throttle.Limit, max int) *simulation {
	d.reset(t)
	d.policy(t, throttle.Policy{Key: "*", Limit: l, MaxInFlight: max})
	s := newSimulation(t, d)
	s.poll = 1000 * time.Hour // nobody looks unless told to: a forgotten wake-up would show
	return s
}

// In every window the departed cost is at most burst + rate × window: with any costs,
// several keys, schedulers and workers of any speed, jobs that miss their slots, fail
// and come again, workers that stand still and a clock that steps back. And every job
// gets through.
func TestNoWindowHoldsMoreThanBurstAndRate(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		checks(t, d.few(20))
		rapid.Check(t, func(t *rapid.T) {
			l := drawLimit(t)
			s := drawnSimulation(t, d, l, rapid.SampledFrom([]int{1, 5, 1000}).Draw(t, "max in flight"))
			s.schedulers = rapid.IntRange(1, 3).Draw(t, "schedulers")
			s.latency = between(t, 0, 150*time.Millisecond)
			s.work = between(t, 0, 2*time.Second)()
			seldom := rapid.SampledFrom([]bool{false, false, false, false, true})
			s.miss = func() bool { return seldom.Draw(t, "missed") }
			s.end = func(departure) (string, time.Duration) {
				what := rapid.SampledFrom([]string{script.Done, script.Done, script.Dead, script.Return, script.Retry}).Draw(t, "end")
				return what, between(t, 0, 3*time.Second)()
			}
			maxCost := rapid.SampledFrom([]int64{1, 3, 30}).Draw(t, "max cost")
			s.enqueue(append(drawJobs(t, "a", maxCost), drawJobs(t, "b", maxCost)...)...)
			for i := range rapid.IntRange(0, 3).Draw(t, "troubles") {
				s.forward(between(t, 0, 3*time.Second)())
				switch rapid.IntRange(0, 2).Draw(t, "trouble") {
				case 0:
					s.stop()
					s.forward(between(t, 0, 9*time.Second)())
					s.start()
				case 1:
					s.jump(-between(t, 0, time.Hour)())
				default:
					s.enqueue(entries("a", fmt.Sprintf("later%d", i))...)
				}
			}
			s.drain(100 * 24 * time.Hour)
			s.keepsLimit(l, "a", "b")
		})
	})
}

// A backlogged key never idles longer than its limit asks for while workers are free,
// and its jobs leave by their priorities, and in the order they came.
func TestBackloggedKeyIsNeverIdle(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		checks(t, d.few(20))
		rapid.Check(t, func(t *rapid.T) {
			l := drawLimit(t)
			s := drawnSimulation(t, d, l, 10_000)
			s.schedulers = rapid.IntRange(1, 3).Draw(t, "schedulers")
			latency := between(t, 0, s.lead*3/10)()
			s.latency = func() time.Duration { return latency }
			jobs := drawJobs(t, "k", rapid.SampledFrom([]int64{1, 3, 30}).Draw(t, "max cost"))
			s.enqueue(jobs...)
			s.drain(100 * 24 * time.Hour)

			slices.SortStableFunc(jobs, func(a, b script.Entry) int { return priority(b) - priority(a) })
			last := s.departures[0]
			for i, d := range s.departures {
				require.Equal(t, jobs[i].ID, d.job)
				// What is in the bucket after a departure, less what may be when the next leaves.
				most := span(l, max(l.Burst, last.Cost)-max(0, l.Burst-d.Cost))
				require.LessOrEqual(t, d.At.Sub(last.At), most+2*rounding, "%s after %s", d.job, last.job)
				last = d
			}
			s.keepsLimit(l, "k")
		})
	})
}
