package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
)

// systemAt is a system on servers that somebody else started.
func systemAt(tb testing.TB, url string) *system {
	tb.Helper()
	client, err := throttle.Open(url)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = client.Close() })
	queue, err := throttle.NewQueue(tb.Context(), client, throttle.QueueConfig{})
	require.NoError(tb, err)
	return &system{tb: tb, client: client, queue: queue, limits: map[string]throttle.Limit{}}
}

func TestKeysSpreadOverAClusterAndKeepTheirLimits(t *testing.T) {
	const each = 20
	cluster := throttletest.StartCluster(t)
	s := systemAt(t, cluster.URL())
	var keys []string
	for i := range 30 {
		keys = append(keys, fmt.Sprintf("{%d} ä:b", i)) // braces of a key are not a hash tag
	}
	s.limit("20/s", 1, keys...)
	c := s.calls()
	s.schedule()
	s.work(worker.Config{}, c.handler(nil))
	for _, key := range keys {
		s.enqueue(jobs(key, each)...)
	}
	c.wait("", each*len(keys))
	s.empty(keys...)
	for _, key := range keys {
		require.NoError(t, s.report(c, key, ids(each)).Check(throttletest.Bounds{MaxExcess: 1}))
	}
	for i, node := range cluster.Nodes {
		names, err := node.Client().Keys(t.Context(), "weir:{*").Result()
		require.NoError(t, err)
		require.NotEmpty(t, names, "master %d holds nothing", i)
	}
}

func TestASentinelFailoverLosesNoJob(t *testing.T) {
	const total = 150
	sentinel := throttletest.StartSentinel(t)
	s := systemAt(t, sentinel.URL())
	s.limit("50/s", 1, "a")
	c := s.calls()
	// An end that the new master never heard of is made up for when the lease is over.
	s.scheduleWith(throttle.SchedulerConfig{Lease: 2 * time.Second}, nil)
	s.work(worker.Config{Lease: 2 * time.Second}, c.handler(nil))
	s.enqueue(jobs("a", total)...)
	c.wait("a", total/3)
	require.NoError(t, sentinel.Failover())
	// What the old master had not passed on yet happens again, so only the first
	// call of each job counts.
	s.eventually(func() bool {
		seen := make(map[string]bool)
		for _, id := range idsOf(c.of("a")) {
			seen[id] = true
		}
		return len(seen) == total
	}, "jobs are missing after the failover")
	s.empty("a")
}
