package throttle

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirq/weir/throttle/internal/script"
)

// Every job is in one parcel, of its round and pool, in its order. The jobs of a key
// that were released together stay together, and the parcels of a round can be counted.
func TestParcelsOfARound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newParcels()
		want := make(map[stream][]Hold)
		earlier := rapid.IntRange(0, 3).Draw(t, "earlier")
		for release := range rapid.IntRange(1, 8).Draw(t, "releases") {
			round := rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "round")
			var jobs []script.Released
			for key := range rapid.IntRange(0, 10).Draw(t, "keys") {
				pool := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "pool")
				for n := range rapid.SampledFrom([]int{1, 1, 2, 31, 33, 64}).Draw(t, "jobs") {
					j := script.Released{Key: fmt.Sprint(release, key), ID: fmt.Sprint(n), Release: int64(n), Pool: pool}
					jobs = append(jobs, j)
					to := stream{round, pool}
					want[to] = append(want[to], Hold{Key: j.Key, ID: j.ID, Release: j.Release})
				}
			}
			p.add(0, round, earlier, jobs)
		}

		got := make(map[stream][]Hold)
		number := make(map[stream]int)
		where := make(map[stream]map[string]string)
		for _, parcel := range p.filled {
			to := stream{parcel.Round, parcel.Pool}
			require.Equal(t, ParcelID(parcel.Round, earlier+number[to]), parcel.ID)
			number[to]++
			require.LessOrEqual(t, len(parcel.Jobs), ParcelSize)
			got[to] = append(got[to], parcel.Jobs...)
			if where[to] == nil {
				where[to] = make(map[string]string)
			}
			for _, h := range parcel.Jobs {
				if in, known := where[to][h.Key]; known {
					require.Equal(t, in, parcel.ID)
				}
				where[to][h.Key] = parcel.ID
			}
		}
		require.Equal(t, want, got)
		for to, jobs := range want {
			require.LessOrEqual(t, number[to], 1+2*len(jobs)/ParcelSize)
			require.GreaterOrEqual(t, p.numbered(to.round), number[to])
		}
	})
}
