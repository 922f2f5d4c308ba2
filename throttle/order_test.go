package throttle_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
)

// Among jobs that came together the highest priority leaves first, and each priority in
// the order in which it came.
func TestPrioritiesLeaveInTheirOrder(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 1)
		s.down = true
		var want []string
		for i := range 20 {
			s.put(throttle.Job{Key: "k", ID: fmt.Sprintf("%02d-p%d", i, i%10), Type: "t", Priority: i % 10})
			s.forward(time.Millisecond)
		}
		for p := 9; p >= 0; p-- {
			want = append(want, fmt.Sprintf("%02d-p%d", p, p), fmt.Sprintf("%02d-p%d", p+10, p))
		}
		s.down = false
		s.drain(time.Minute)
		require.Equal(t, want, s.jobs("k"))
		s.keepsLimit(limit(t, "10/s", 1), "k")
	})
}

// Under a constant load of the highest priority that takes all of the rate, the lowest
// still leaves within nine times the ageing.
func TestTheLowestPriorityIsNotStarved(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		const ageing = 2 * time.Second
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "10/s", 1), MaxInFlight: 100, Ageing: ageing})
		s := newSimulation(t, d)
		// A backlog of two seconds of urgent jobs is there, and as many come as leave.
		urgent := 0
		flood := func(n int) {
			var jobs []throttle.Job
			for range n {
				urgent++
				jobs = append(jobs, throttle.Job{Key: "k", ID: fmt.Sprintf("u%d", urgent), Type: "t", Priority: 9})
			}
			s.put(jobs...)
		}
		flood(20)
		came := s.now
		s.put(throttle.Job{Key: "k", ID: "low", Type: "t"})
		for range 250 {
			s.forward(100 * time.Millisecond)
			flood(1)
		}
		at := slices.Index(s.jobs("k"), "low")
		require.GreaterOrEqual(t, at, 0, "it left")
		waited := s.slots("k", came)[at]
		require.Greater(t, waited, 9*ageing-time.Second, "urgent ones went first")
		// What came before its time was over and still waited goes first as well: two seconds.
		require.LessOrEqual(t, waited, 9*ageing+2*time.Second+200*time.Millisecond)
	})
}

// A job of a higher priority does not overtake one that has waited longer than the
// ageing makes up for.
func TestAgeingDecidesWhoOvertakes(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "1/s", 1), MaxInFlight: 100, Ageing: 10 * time.Second})
		s := newSimulation(t, d)
		s.down = true
		s.put(throttle.Job{Key: "k", ID: "old", Type: "t"})
		s.forward(19 * time.Second)
		s.put(throttle.Job{Key: "k", ID: "two", Type: "t", Priority: 2})
		s.forward(2 * time.Second)
		s.put(throttle.Job{Key: "k", ID: "late", Type: "t", Priority: 2})
		s.down = false
		s.drain(time.Minute)
		require.Equal(t, []string{"two", "old", "late"}, s.jobs("k"))
	})
}

// An ordered key has one job at a time in flight, and one that fails holds the line
// until it is done, or dead.
func TestOrderedKeysRunOneJobAtATime(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "100/s", 10), MaxInFlight: 100, Ordered: true})
		s := newSimulation(t, d)
		s.work = 30 * time.Millisecond
		s.end = func(dep departure) (string, time.Duration) {
			switch {
			case dep.job == "000003" && dep.attempt < 3:
				return script.Retry, 2 * time.Second
			case dep.job == "000005":
				return script.Dead, 0
			}
			return script.Done, 0
		}
		s.enqueue(entries("k", ids(8)...)...)
		urgent := throttle.Job{Key: "k", ID: "urgent", Type: "t", Priority: 9}
		s.forward(time.Second) // the third is between its attempts
		s.put(urgent)
		s.drain(time.Minute)
		require.Equal(t, []string{
			"000001", "000002", "000003", "000003", "000003", "urgent", "000004", "000005", "000006", "000007", "000008",
		}, s.jobs("k"))
		slots := s.slots("k", s.departures[0].At)
		for i := 1; i < len(slots); i++ {
			require.GreaterOrEqual(t, slots[i]-slots[i-1], s.work, "job %d left while the one before it ran", i+1)
		}
	})
}

// Whoever holds an ordered line up may also be cancelled, expire, or be taken back from a
// worker that was lost; the line goes on.
func TestOrderedLinesGoOn(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		for name, how := range map[string]func(s *simulation){
			"cancelled": func(s *simulation) {
				s.do(func(q *throttle.Queue) {
					_, err := q.Cancel(context.Background(), "k", "1")
					require.NoError(t, err)
				})
				s.open--
			},
			"purged": func(s *simulation) {
				s.do(func(q *throttle.Queue) {
					n, err := q.PurgeWhere(context.Background(), "k", throttle.Filter{State: throttle.Delayed})
					require.NoError(t, err)
					require.EqualValues(t, 1, n)
				})
				s.open--
			},
			"dead at its deadline": func(s *simulation) {
				s.forward(2 * time.Hour)
				s.open-- // release buries it
			},
		} {
			t.Run(name, func(t *testing.T) {
				d.reset(t)
				d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "10/s", 1), MaxInFlight: 100, Ordered: true})
				s := newSimulation(t, d)
				s.end = func(dep departure) (string, time.Duration) {
					if dep.job == "1" {
						return script.Retry, time.Hour
					}
					return script.Done, 0
				}
				s.put(
					throttle.Job{Key: "k", ID: "1", Type: "t", Deadline: s.now.Add(90 * time.Minute)},
					throttle.Job{Key: "k", ID: "2", Type: "t"}, throttle.Job{Key: "k", ID: "3", Type: "t"},
				)
				s.forward(time.Second)
				require.Equal(t, []string{"1"}, s.jobs("k"))
				how(s)
				s.drain(3 * time.Hour)
				jobs := s.jobs("k")
				require.Equal(t, []string{"2", "3"}, jobs[len(jobs)-2:])
			})
		}
	})
}

// A key that was ordered once and is again is not held up by a job of back then.
func TestAnOldHeadHoldsNothingUp(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		p := throttle.Policy{Key: "*", Limit: limit(t, "10/s", 1), MaxInFlight: 10, Ordered: true}
		free := p
		free.Ordered = false
		d.policy(t, p)
		s := newSimulation(t, d)
		s.work = 5 * time.Second
		s.put(throttle.Job{Key: "k", ID: "a", Type: "t"}, throttle.Job{Key: "k", ID: "far", Type: "t", NotBefore: s.now.Add(100 * time.Hour)})
		s.forward(time.Second)
		s.call(d.policies("*", throttle.PolicyText(free)))
		s.forward(time.Minute)
		s.call(d.policies("*", throttle.PolicyText(p)))
		s.put(throttle.Job{Key: "k", ID: "a", Type: "t", NotBefore: s.now.Add(10 * time.Hour)},
			throttle.Job{Key: "k", ID: "b", Type: "t"}, throttle.Job{Key: "k", ID: "c", Type: "t"})
		s.forward(time.Minute)
		require.Equal(t, []string{"a", "b", "c"}, s.jobs("k"))
	})
}

// A job that becomes the first of the line, and may leave at once, does.
func TestWhoeverBecomesTheFirstIsLookedAt(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		cheap := throttle.Job{Key: "k", ID: "cheap", Type: "t", Priority: 9}
		for name, act := range map[string]func(s *simulation){
			"urgent": func(s *simulation) { s.put(cheap) },
			"replaced": func(s *simulation) {
				s.put(throttle.Job{Key: "k", ID: "dear", Type: "t", Dedupe: &throttle.Dedupe{Replace: true}})
				s.costs["k dear"] = 1
			},
			"purged": func(s *simulation) {
				s.put(throttle.Job{Key: "k", ID: "cheap", Type: "t"})
				s.do(func(q *throttle.Queue) {
					_, err := q.PurgeWhere(context.Background(), "k", throttle.Filter{Prefix: "dear"})
					require.NoError(t, err)
				})
			},
			"expired": func(s *simulation) {
				s.put(throttle.Job{Key: "k", ID: "cheap", Type: "t"})
				s.forward(20 * time.Second)
			},
		} {
			t.Run(name, func(t *testing.T) {
				d.reset(t)
				s := paced(t, d, "1/m", 10)
				s.poll = 1000 * time.Hour
				s.put(throttle.Job{Key: "k", ID: "first", Type: "t", Cost: 5})
				s.forward(time.Second)
				s.put(throttle.Job{Key: "k", ID: "dear", Type: "t", Cost: 10, TTL: 10 * time.Second})
				s.forward(time.Second)
				act(s)
				s.forward(time.Second)
				want := "cheap"
				if name == "replaced" {
					want = "dear"
				}
				require.Equal(t, []string{"first", want}, s.jobs("k"))
			})
		}
	})
}
