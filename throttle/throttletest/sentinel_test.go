package throttletest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle/throttletest"
)

func TestSentinelFailsOver(t *testing.T) {
	t.Parallel()
	var s *throttletest.Sentinel
	t.Run("up", func(t *testing.T) {
		s = throttletest.StartSentinel(t)
		require.Equal(t, "redis-sentinel://"+s.Monitor.Addr()+"?master=weir", s.URL())
		require.NoError(t, s.Client().Set(t.Context(), "k", "before", 0).Err())
		require.EqualValues(t, 1, s.Client().Do(t.Context(), "wait", 1, 0).Val(), "the replica has it")

		// There and back, without a pause between.
		for _, i := range []int{1, 0} {
			was, err := s.Master(t.Context())
			require.NoError(t, err)
			require.NoError(t, s.Failover())
			now, err := s.Master(t.Context())
			require.NoError(t, err)
			require.Same(t, s.Nodes[i], now)
			require.NoError(t, now.Client().Set(t.Context(), "k", i, 0).Err())
			require.ErrorContains(t, was.Client().Set(t.Context(), "k", "lost", 0).Err(), "READONLY")
			require.Eventually(t, func() bool { return s.Client().Incr(t.Context(), "n").Err() == nil }, patience, 10*ms,
				"the client finds the new master")
		}
	})
	for _, n := range append(s.Nodes, s.Monitor) {
		down(t, n.Addr())
	}
	require.NoError(t, s.Close(), "closing again does nothing")
}

func TestSentinelReplacesADeadMaster(t *testing.T) {
	t.Parallel()
	s := throttletest.StartSentinel(t)
	require.NoError(t, s.Nodes[0].Kill())
	require.NoError(t, s.Failover())
	require.NoError(t, s.Nodes[1].Client().Set(t.Context(), "k", "v", 0).Err())
}
