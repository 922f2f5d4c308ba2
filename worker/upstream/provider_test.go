package upstream_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle/throttletest/provider"
	"github.com/weirq/weir/worker/upstream"
)

// Over the wire, in each dialect, also where the clock of the other side is wrong: who
// rests as long as is said is served again, and did not rest much longer than needed.
func TestWhoRestsIsServed(t *testing.T) {
	const window = 10 * time.Second
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}

	for _, skew := range []time.Duration{0, 5 * time.Minute, -5 * time.Minute} {
		for _, dialect := range []provider.Dialect{provider.None, provider.Epoch, provider.EpochMillis, provider.Delta, provider.IETF} {
			for _, form := range []provider.RetryAfter{provider.Seconds, provider.Date, provider.Absent} {
				if dialect == provider.None && form == provider.Absent {
					continue // nothing is said
				}
				t.Run(fmt.Sprintf("skew %v, dialect %d, form %d", skew, dialect, form), func(t *testing.T) {
					var ahead atomic.Int64 // of the clock of this test
					clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
					s := provider.Start(t, provider.Quota{
						Limit: 2, Window: window, Dialect: dialect, RetryAfter: form,
						Now: func() time.Time { return clock().Add(skew) },
					})
					call := func() upstream.Said {
						req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, http.NoBody)
						require.NoError(t, err)
						resp, err := client.Do(req)
						require.NoError(t, err)
						require.NoError(t, resp.Body.Close())
						return upstream.Read(resp.StatusCode, resp.Header, clock(), day)
					}
					told := dialect != provider.None
					for left := range 2 {
						said := call()
						require.False(t, said.Refused)
						require.Equal(t, told && left == 1, said.RetryAfter > 0, "it rests before it is refused")
						if told {
							require.Equal(t, int64(1-left), said.Remaining)
							require.Equal(t, int64(2), said.Limit)
						}
						if dialect == provider.IETF {
							require.Equal(t, window, said.Window)
						}
					}
					ahead.Add(int64(4 * time.Second))
					said := call()
					require.True(t, said.Refused)
					require.Greater(t, said.RetryAfter, 4*time.Second)
					// A date is whole seconds, and so is the one that it is measured from.
					require.LessOrEqual(t, said.RetryAfter, 8*time.Second)
					ahead.Add(int64(said.RetryAfter))
					require.False(t, call().Refused)
				})
			}
		}
	}
}

func TestBucketOfShopify(t *testing.T) {
	s := provider.Start(t, provider.Bucket{})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	var said upstream.Said
	for n := int64(1); n <= 1000 && !said.Refused; n++ {
		resp, err := client.Post(s.URL, "", nil)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		said = upstream.Read(resp.StatusCode, resp.Header, time.Now(), day)
		require.Equal(t, int64(40), said.Limit)
		require.GreaterOrEqual(t, said.Remaining, 40-n)
	}
	require.Equal(t, upstream.Said{Refused: true, RetryAfter: 2 * time.Second, Limit: 40}, said)
}
