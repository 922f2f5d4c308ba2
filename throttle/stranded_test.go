package throttle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A released job that nobody departs, because its pool has no workers, takes room
// outside the bucket. What room is left must go on being used: the key was looked at
// too early for a dear job, and then not again before the stranded job's lease ended.
func TestStrandedJobDoesNotHoldUpItsKey(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 10)
		s.latency = func() time.Duration { return 0 }
		jobs := entries("k", ids(12)...)
		for i := range jobs {
			jobs[i].Cost = 5
		}
		jobs[0].Pool = "nobody"
		s.ignored = "nobody"
		from := s.now
		s.enqueue(jobs...)
		s.forward(8 * time.Second) // less than a lease
		require.Len(t, s.departures, 11)
		for i, at := range s.slots("k", from) {
			require.LessOrEqual(t, at, time.Duration(i)*500*time.Millisecond, "job %d", i+1)
		}
		s.keepsLimit(limit(t, "10/s", 10), "k")
	})
}
