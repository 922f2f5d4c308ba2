package worker_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
)

// One job at a time, so that the order of the calls is that of the departures; and a
// restart of everything on the way.
func TestOrderOfAKeySurvivesARestart(t *testing.T) {
	t.Parallel()
	const n = 100
	s := newSystem(t)
	s.limit("50/s", 1, "k")
	s.enqueue(jobs("k", n)...)
	c := s.calls()
	config := worker.Config{Concurrency: 1}
	scheduler, server := s.schedule(), s.work(config, c.handler(nil))
	c.wait("k", 60)
	scheduler.stop()
	server.stop()
	before := len(c.of("k"))
	require.Less(t, before, n)
	s.work(config, c.handler(nil))
	s.schedule()
	c.wait("k", n)
	s.empty("k")
	require.Equal(t, ids(n), idsOf(c.of("k")))
	require.NoError(t, s.report(c, "k", ids(n)).Check(throttletest.Bounds{MaxExcess: 1, Ordered: true}))
	for _, j := range c.of("k") {
		require.Equal(t, 1, j.Attempt, "to be given back is no attempt")
	}
}

// What is released together travels in several parcels, which may overtake each
// other; the jobs of a key do not.
func TestParcelsKeepTheOrderOfKeys(t *testing.T) {
	t.Parallel()
	const keys, each = 12, 40
	s := newSystem(t)
	var all []throttle.Job
	var names []string
	for i := range keys {
		names = append(names, fmt.Sprintf("key %d", i))
		all = append(all, jobs(names[i], each)...)
	}
	s.limit("10/s", each, names...)
	s.enqueue(all...)
	c := s.calls()
	s.work(worker.Config{Concurrency: 1}, c.handler(nil))
	s.schedule()
	c.wait("", keys*each)
	for _, key := range names {
		require.Equal(t, ids(each), idsOf(c.of(key)), key)
	}
}

// A key whose jobs are dearer than its burst does not hold up, or overtake, itself.
func TestCostsAreCharged(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("100/s", 5, "k")
	list := jobs("k", 40)
	for i := range list {
		list[i].Cost = int64(1 + i%8)
	}
	s.enqueue(list...)
	c := s.calls()
	s.work(worker.Config{}, c.handler(func(_ context.Context, job call) error {
		if want := list[number(t, job.ID)-1].Cost; job.Cost != want {
			t.Errorf("job %s has cost %d, not %d", job.ID, job.Cost, want)
		}
		return nil
	}))
	s.schedule()
	c.wait("k", 40)
	require.NoError(t, s.report(c, "k", ids(40)).Check(throttletest.Bounds{MaxExcess: 1}))
}
