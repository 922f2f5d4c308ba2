package worker

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// What is stored is counted as it is, in few series whatever the keys are.
func TestStoredJobsAreCounted(t *testing.T) {
	redis := throttletest.StartRedis(t)
	q, err := throttle.NewQueue(t.Context(), redis.Client(), throttle.QueueConfig{})
	require.NoError(t, err)
	require.NoError(t, q.SetPolicy(t.Context(), throttle.Policy{
		Key: throttle.AnyKey, Limit: throttle.Limit{Rate: 1, Period: time.Hour, Burst: 1}, MaxWaiting: 2,
	}))
	var jobs []throttle.Job
	for _, key := range []string{"a", "b", "c"} {
		for range 3 {
			jobs = append(jobs, throttle.Job{Key: key, Type: "t"})
		}
	}
	_, err = q.EnqueueMany(t.Context(), jobs)
	require.ErrorIs(t, err, throttle.ErrFull)

	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(NewStoredCollector(q)))
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP weir_keys Keys that have jobs.
# TYPE weir_keys gauge
weir_keys 3
# HELP weir_jobs Jobs that are stored, by state.
# TYPE weir_jobs gauge
weir_jobs{state="dead"} 0
weir_jobs{state="delayed"} 0
weir_jobs{state="done"} 0
weir_jobs{state="in_flight"} 0
weir_jobs{state="waiting"} 6
`), "weir_keys", "weir_jobs"))
	n, err := testutil.GatherAndCount(registry)
	require.NoError(t, err)
	require.Equal(t, 22, n)

	require.NoError(t, redis.Stop())
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP weir_stored_failures_total Times that the stored state could not be counted.
# TYPE weir_stored_failures_total counter
weir_stored_failures_total 1
`)))
}
