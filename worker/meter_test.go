package worker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

var noon = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return noon.Add(d) }

func mustLimit(tb testing.TB, rate string, burst int64) throttle.Limit {
	tb.Helper()
	l, err := throttle.ParseLimit(rate, burst)
	require.NoError(tb, err)
	return l
}

// granted makes a job that was given a slot d after noon.
func granted(l throttle.Limit, order int64, d time.Duration) *held {
	return &held{order: order, limit: l, slot: after(d), job: throttle.Job{Cost: 1}}
}

// row makes n jobs with slots one interval apart, the first one at noon.
func row(l throttle.Limit, n int) []*held {
	jobs := make([]*held, n)
	for i := range jobs {
		jobs[i] = granted(l, int64(i+1), time.Duration(i)*l.Interval())
	}
	return jobs
}

func orders(jobs []*held) []int64 {
	list := make([]int64, len(jobs))
	for i, h := range jobs {
		list[i] = h.order
	}
	return list
}

const lead = 100 * time.Millisecond

func TestMeterSlackAndTolerance(t *testing.T) {
	for _, c := range []struct {
		rate      string
		burst     int64
		slack     float64
		tolerance time.Duration
	}{
		{"10/s", 1, 0.8, 80 * time.Millisecond},
		{"20/s", 1, 0.8, 40 * time.Millisecond},
		{"100/s", 1, 0.4, 4 * time.Millisecond},
		{"160/s", 1, 0.25, 2 * time.Millisecond}, // timers are no better than that
		{"1000/s", 1, 0.25, 2 * time.Millisecond},
		{"1000000000/1ms", 1, 0.25, 2 * time.Millisecond}, // an interval of no nanosecond
		{"1/s", 1, 0.8, 800 * time.Millisecond},
		{"1/m", 1, 0.8, time.Second}, // well within a lease
		{"1/366h", 1000, 0.8, time.Second},
		{"100/s", 2, 0.4, 14 * time.Millisecond}, // the burst leaves room for one more interval
		{"100/s", 10, 0.4, 50 * time.Millisecond},
		{"1000/s", 100, 0.25, 50 * time.Millisecond},
		{"10/s", 20, 0.8, 80 * time.Millisecond},
		{"100/s", throttle.MaxBurst, 0.4, 50 * time.Millisecond},
		{"1/366h", throttle.MaxBurst, 0.8, time.Second},
	} {
		t.Run(mustLimit(t, c.rate, c.burst).String(), func(t *testing.T) {
			m := newMeter(lead, nil, nil)
			m.bucket.Limit = mustLimit(t, c.rate, c.burst)
			require.InDelta(t, c.slack, m.slack(), 1e-9)
			require.InDelta(t, c.tolerance, m.tolerance(), float64(time.Microsecond))
		})
	}
}

// Siblings that were held up by the same stall would leave together.
func TestMeterAllowsLessLatenessUnderAFasterParent(t *testing.T) {
	for rate, tolerance := range map[string]time.Duration{
		"": 80 * time.Millisecond, "1/s": 80 * time.Millisecond, "20/s": 40 * time.Millisecond,
		"100/s": 4 * time.Millisecond, "1000000/s": 2 * time.Millisecond,
	} {
		m := newMeter(lead, nil, nil)
		m.parents = new(parents)
		h := granted(mustLimit(t, "10/s", 1), 1, 0)
		if rate != "" {
			h.parent, h.parentLimit = "p", mustLimit(t, rate, 1)
		}
		m.add([]*held{h}, 0)
		require.Equal(t, tolerance, m.tolerance(), rate)
	}
}

// What leaves below a parent in one process is spaced by the parent's limit, whichever
// of the keys it is of.
func TestSiblingsAreSpacedByTheirParent(t *testing.T) {
	var shared parents
	var meters []*meter
	for i := range 5 {
		m := newMeter(lead, nil, nil)
		m.parents = &shared
		h := granted(mustLimit(t, "10/s", 1), 1, time.Duration(i)*2*time.Millisecond)
		h.parent, h.parentLimit = "p", mustLimit(t, "500/s", 1)
		m.add([]*held{h}, 0)
		meters = append(meters, m)
	}
	require.Len(t, shared.byKey, 1)
	now := after(8 * time.Millisecond) // four of them are late together
	var leave []time.Duration
	missed := 0
	for _, m := range meters {
		h, late, wait := m.next(now)
		switch {
		case len(late) > 0:
			missed++
		case h != nil:
			leave = append(leave, 0)
		default:
			leave = append(leave, wait)
			h, _, _ = m.next(now.Add(wait))
			require.NotNil(t, h, "it leaves when it was booked for")
		}
	}
	require.Equal(t, []time.Duration{0, 800 * time.Microsecond}, leave, "a slack of 0.6 ahead of the pace")
	require.Equal(t, 3, missed, "slots more than 2 ms ago are given up")
	for _, m := range meters {
		m.retire()
	}
	require.Empty(t, shared.byKey, "a parent is forgotten with the last of them")
}

func TestCreditLetsTheNextJobLeaveAtItsSlot(t *testing.T) {
	l := mustLimit(t, "10/s", 1)
	m := newMeter(lead, nil, nil)
	first, second := granted(l, 1, 0), granted(l, 2, 100*time.Millisecond)
	first.job.Cost, second.job.Cost = 5, 5
	m.add([]*held{first, second}, 0)
	h, _, _ := m.next(after(0))
	require.Equal(t, first, h)
	_, _, wait := m.next(after(50 * time.Millisecond))
	require.Equal(t, 50*time.Millisecond, wait)
	m.credit(4)
	h, _, _ = m.next(after(100 * time.Millisecond))
	require.Equal(t, second, h)
}

func TestMeterLetsJobsLeaveAtTheirSlots(t *testing.T) {
	m := newMeter(lead, nil, nil)
	jobs := row(mustLimit(t, "10/s", 1), 3)
	m.add(jobs, 0)
	for i, job := range jobs {
		slot := job.slot
		h, missed, wait := m.next(slot.Add(-30 * time.Millisecond))
		require.Nil(t, h, "job %d left early", i)
		require.Empty(t, missed)
		require.Equal(t, 30*time.Millisecond, wait)
		h, _, _ = m.next(slot.Add(2 * time.Millisecond)) // as timers are
		require.Same(t, job, h)
	}
	_, _, wait := m.next(after(time.Hour))
	require.Equal(t, forever, wait)
	require.True(t, m.idle())
}

func TestMeterLetsABurstLeaveAtOnce(t *testing.T) {
	l := mustLimit(t, "10/s", 5)
	m := newMeter(lead, nil, nil)
	for i := range 7 {
		m.add([]*held{granted(l, int64(i), time.Duration(max(0, i-4))*l.Interval())}, 0)
	}
	for i := range 5 {
		h, _, _ := m.next(after(time.Millisecond))
		require.NotNil(t, h, "job %d of the burst", i+1)
	}
	h, missed, wait := m.next(after(time.Millisecond))
	require.Nil(t, h)
	require.Empty(t, missed)
	require.Equal(t, 99*time.Millisecond, wait)
}

// The slots that passed are given up, not used up together, and the jobs that came
// first get those that are left.
func TestMeterGivesUpSlotsThatAStallPassed(t *testing.T) {
	m := newMeter(lead, nil, nil)
	jobs := row(mustLimit(t, "10/s", 1), 10)
	slots := make([]time.Time, len(jobs))
	for i, h := range jobs {
		slots[i] = h.slot
	}
	m.add(jobs, 0)
	_, missed, _ := m.next(after(550 * time.Millisecond))
	require.Equal(t, []int64{6, 7, 8, 9, 10}, orders(missed)) // slots 0 to 400 ms are out of tolerance
	require.Equal(t, []int64{1, 2, 3, 4, 5}, orders(m.jobs))
	for i, h := range m.jobs {
		require.Equal(t, slots[5+i], h.slot)
	}

	_, missed, wait := m.next(after(551 * time.Millisecond))
	require.Empty(t, missed)
	require.Equal(t, forever, wait, "nobody overtakes the jobs that are away")
	require.False(t, m.idle())

	for i, h := range missed {
		h.slot = slots[9].Add(time.Duration(i+1) * 100 * time.Millisecond)
	}
	m.add(missed, 5)
	h, _, _ := m.next(after(552 * time.Millisecond))
	require.EqualValues(t, 1, h.order)
}

func TestMeterGoesOnWhenJobsThatWereAwayGetNoSlot(t *testing.T) {
	m := newMeter(lead, nil, nil)
	m.add(row(mustLimit(t, "10/s", 1), 2), 0)
	_, missed, _ := m.next(after(95 * time.Millisecond))
	require.Len(t, missed, 1)
	_, _, wait := m.next(after(100 * time.Millisecond))
	require.Equal(t, forever, wait)
	m.add(nil, 1)
	h, _, _ := m.next(after(101 * time.Millisecond))
	require.EqualValues(t, 1, h.order)
	require.True(t, m.idle())
}

// A job that only the meter's own spacing makes late is one slot of lost capacity,
// not a job out of place.
func TestMeterGivesUpOneSlotWhereItHasToSpace(t *testing.T) {
	l := mustLimit(t, "10/s", 1)
	m := newMeter(lead, nil, nil)
	m.add([]*held{granted(l, 1, 0), granted(l, 2, 0), granted(l, 3, 100*time.Millisecond)}, 0) // as no bucket gives them out
	h, _, _ := m.next(noon)
	require.EqualValues(t, 1, h.order)
	h, missed, wait := m.next(noon)
	require.Nil(t, h)
	require.Empty(t, missed)
	require.InDelta(t, 20*time.Millisecond, wait, float64(time.Microsecond)) // an interval less the slack
	_, missed, _ = m.next(after(90 * time.Millisecond))
	require.Equal(t, []int64{3}, orders(missed))
	require.Equal(t, []int64{2}, orders(m.jobs))
	require.Equal(t, after(100*time.Millisecond), m.jobs[0].slot)
}

func TestMeterKeepsTheOrderOfArrival(t *testing.T) {
	l := mustLimit(t, "10/s", 1)
	for name, adds := range map[string][][]*held{
		"answers overtake each other": {
			{granted(l, 3, 0), granted(l, 4, 100*time.Millisecond)},
			{granted(l, 1, 200*time.Millisecond), granted(l, 2, 300*time.Millisecond)},
		},
		"slots out of line": {
			{granted(l, 1, 300*time.Millisecond), granted(l, 2, 200*time.Millisecond)},
			{granted(l, 3, 100*time.Millisecond), granted(l, 4, 0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMeter(lead, nil, nil)
			for _, jobs := range adds {
				m.add(jobs, 0)
			}
			require.Equal(t, []int64{1, 2, 3, 4}, orders(m.jobs))
			for i, h := range m.jobs {
				require.Equal(t, after(time.Duration(i)*100*time.Millisecond), h.slot)
			}
		})
	}
}

// A slot was charged with the cost of its job, so no other job may have it.
func TestMeterLeavesJobsOfMixedCostTheirSlots(t *testing.T) {
	l := mustLimit(t, "10/s", 1)
	m := newMeter(lead, nil, nil)
	dear := granted(l, 2, 100*time.Millisecond)
	dear.job.Cost = 5
	m.add([]*held{granted(l, 1, 0), dear, granted(l, 3, 600*time.Millisecond)}, 0)
	early := granted(l, 4, 50*time.Millisecond)
	m.add([]*held{early}, 0)
	require.Equal(t, []int64{1, 4, 2, 3}, orders(m.jobs))

	_, missed, _ := m.next(after(190 * time.Millisecond))
	require.Equal(t, []int64{1, 4, 2}, orders(missed))
	require.Equal(t, []int64{3}, orders(m.jobs))
	require.Equal(t, after(600*time.Millisecond), m.jobs[0].slot)
}

// A meter whose jobs may be later than the bound allows is kept for what it knows of
// the last departures: a new one would let a burst leave on top of them.
func TestMeterRemembersItsDepartures(t *testing.T) {
	for _, c := range []struct {
		rate  string
		burst int64
		sent  int
		kept  time.Duration // 0: not at all
	}{
		{"10/s", 1, 1, 0}, {"10/s", 20, 20, 0}, {"100/s", 1, 1, 0}, {"1/h", 1000, 10, 0}, // the slots alone keep the bound
		{"100/s", 10, 10, 100 * time.Millisecond}, {"100/s", 10, 2, 20 * time.Millisecond},
		{"1000/s", 1, 1, time.Millisecond}, {"1000/s", 100, 100, 100 * time.Millisecond},
		{"1000/m", 1000, 1000, 10 * time.Second}, // not for as long as the bucket takes
	} {
		t.Run(mustLimit(t, c.rate, c.burst).String(), func(t *testing.T) {
			l := mustLimit(t, c.rate, c.burst)
			m := newMeter(lead, nil, nil)
			for i := range c.sent {
				m.add([]*held{granted(l, int64(i), 0)}, 0)
			}
			for range c.sent {
				h, _, _ := m.next(noon)
				require.NotNil(t, h)
			}
			_, _, wait := m.next(noon)
			if c.kept == 0 {
				require.Equal(t, forever, wait)
				return
			}
			require.InDelta(t, c.kept, wait, float64(time.Microsecond))
			_, _, wait = m.next(after(wait / 2))
			require.InDelta(t, c.kept/2, wait, float64(2*time.Microsecond))
			_, _, wait = m.next(after(c.kept + time.Millisecond))
			require.Equal(t, forever, wait)
		})
	}
}

func TestMeterRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustLimit(t, "10/s", 1)
		begin := time.Now()
		left := map[int64]time.Duration{}
		m := newMeter(lead, func(h *held) { left[h.order] = time.Since(begin) }, nil)
		ended := make(chan struct{})
		go func() {
			m.run(nil, m.idle)
			close(ended)
		}()
		jobs := row(l, 3)
		for i, h := range jobs {
			h.slot = begin.Add(time.Duration(i) * 100 * time.Millisecond)
		}
		m.add(jobs, 0)
		<-ended
		require.Equal(t, map[int64]time.Duration{1: 0, 2: 100 * time.Millisecond, 3: 200 * time.Millisecond}, left)
	})
}

func TestMeterStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeter(lead, func(*held) { t.Error("a job left") }, nil)
		h := granted(mustLimit(t, "10/s", 1), 1, 0)
		h.slot = time.Now().Add(time.Second)
		m.add([]*held{h}, 0)
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			m.run(stop, m.idle)
			close(ended)
		}()
		synctest.Wait()
		close(stop)
		<-ended
		require.Equal(t, []*held{h}, m.empty())
		require.Empty(t, m.empty())
	})
}
