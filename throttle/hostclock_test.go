package throttle_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
	"github.com/weirq/weir/throttle/throttletest"
)

// The clock of Redis and that of the host are two minutes apart, either way: slots and
// estimates go by the clock of Redis, and nothing comes early or late.
func TestHostClockDoesNotMatter(t *testing.T) {
	for name, skew := range map[string]time.Duration{"ahead": -2 * time.Minute, "behind": 2 * time.Minute} {
		t.Run("host is "+name, func(t *testing.T) {
			t.Parallel()
			client := throttletest.StartRedis(t).Client()
			scripts := script.NewSetWithClock(`
				local function server_time()
				  local t = redis.call('TIME')
				  return tonumber(t[1]) * 1000000 + tonumber(t[2]) + ` + strconv.FormatInt(skew.Microseconds(), 10) + `
				end`)
			q, err := throttle.NewQueueOn(t.Context(), client, throttle.QueueConfig{}, scripts)
			require.NoError(t, err)
			l := limit(t, "20/s", 1)
			require.NoError(t, q.SetPolicies(t.Context(), []throttle.Policy{{Key: throttle.AnyKey, Limit: l}}))
			const n = 20
			out := handedOver(t, q)
			p, err := throttle.NewPermits(q, 0)
			require.NoError(t, err)
			began := time.Now()
			receipts, err := q.EnqueueMany(t.Context(), numbered("k", n))
			require.NoError(t, err)
			events := make([]throttletest.Event, 0, n)
			for i := range n {
				hold := <-out
				permits, err := p.Depart(t.Context(), time.Minute, p.NewToken(), []throttle.Hold{hold})
				require.NoError(t, err)
				events = append(events, throttletest.Event{Key: "k", At: permits[0].At})
				require.WithinDuration(t, began.Add(time.Duration(i)*l.Interval()), permits[0].At, 500*time.Millisecond)
				require.WithinDuration(t, permits[0].At, receipts[i].EstimatedDeparture.Add(-skew), 500*time.Millisecond)
			}
			reports, err := throttletest.Measure(map[string]throttle.Limit{"k": l}, events, nil)
			require.NoError(t, err)
			require.NoError(t, reports.Check(throttletest.Bounds{MinRatio: 0.6, MaxExcess: 0.2}))
		})
	}
}
