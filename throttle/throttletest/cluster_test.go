package throttletest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle/throttletest"
)

func TestClusterSpreadsKeysOverAllMasters(t *testing.T) {
	t.Parallel()
	var c *throttletest.Cluster
	t.Run("up", func(t *testing.T) {
		c = throttletest.StartCluster(t)
		require.Len(t, c.Nodes, 3)
		require.Equal(t, fmt.Sprintf("redis+cluster://%s,%s,%s", c.Nodes[0].Addr(), c.Nodes[1].Addr(), c.Nodes[2].Addr()), c.URL())

		const keys = 300
		for i := range keys {
			require.NoError(t, c.Client().Set(t.Context(), fmt.Sprint(i), i, 0).Err())
		}
		var sum int64
		for _, n := range c.Nodes {
			held := n.Client().DBSize(t.Context()).Val()
			require.Greater(t, held, int64(keys/6), "keys at %s", n.Addr())
			sum += held
		}
		require.EqualValues(t, keys, sum)
		require.ErrorContains(t, c.Nodes[0].Client().MGet(t.Context(), "a", "b").Err(), "CROSSSLOT")

		// A node that was away is one of the cluster again.
		require.NoError(t, c.Nodes[1].Restart())
		require.Eventually(t, func() bool {
			info := c.Nodes[1].Client().ClusterInfo(t.Context()).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		}, patience, 10*ms)
	})
	for _, n := range c.Nodes {
		down(t, n.Addr())
	}
	require.NoError(t, c.Close(), "closing again does nothing")
}
