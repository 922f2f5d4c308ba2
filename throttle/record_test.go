package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStoredJobsAreReadBack(t *testing.T) {
	for name, job := range map[string]Job{
		"bare":   {Key: "k", ID: "1", Type: "t", Cost: 1, Payload: []byte{}},
		"binary": {Key: "k", ID: "1", Type: "t", Cost: 1, Payload: []byte{0, 0xff, '\n', '\r', '{', 0x80}},
		"whole": {
			Key: "k", ID: "1", Type: "t", Cost: 7, Payload: []byte("{}\n{}"), Timeout: time.Minute, MaxAttempts: 3,
			Headers: map[string]string{"a": "b\nc", "ä": "<&>"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stored, err := encodeJob(job, time.Now())
			require.NoError(t, err)
			got, err := decodeJob("k", "1", string(stored))
			require.NoError(t, err)
			require.Equal(t, job, got)
		})
	}
}

func TestDamagedJobsAreToldByTheirAddress(t *testing.T) {
	for _, stored := range []string{"", "}{", "{}\n", "{\"type\":\"t\"}", "\n", "null\nx"} {
		got, err := decodeJob("k", "1", stored)
		require.ErrorIs(t, err, errRecord, "%q", stored)
		require.Equal(t, Job{Key: "k", ID: "1", Cost: 1}, got)
	}
}

func FuzzDecodeJob(f *testing.F) {
	f.Add("{\"type\":\"t\",\"at\":1}\nbody")
	f.Add("}{")
	f.Fuzz(func(t *testing.T, stored string) {
		job, err := decodeJob("k", "1", stored)
		if err != nil {
			require.ErrorIs(t, err, errRecord)
			return
		}
		again, err := encodeJob(job, time.Now())
		require.NoError(t, err)
		same, err := decodeJob("k", "1", string(again))
		require.NoError(t, err)
		require.Equal(t, job, same)
	})
}

// A stall between a call and its answer makes a long round trip, which says little
// about the server's time: the shorter one before it is trusted.
func TestServerClockTrustsTheShortestRoundTrip(t *testing.T) {
	var c serverClock
	t0 := time.Now()
	c.learn(1_000_000, t0, t0.Add(200*time.Microsecond))
	slot := c.local(1_500_000)
	require.Equal(t, t0.Add(500*time.Millisecond+100*time.Microsecond), slot)

	stalled := t0.Add(time.Second)
	c.learn(2_000_100, stalled, stalled.Add(80*time.Millisecond))
	require.Equal(t, slot, c.local(1_500_000))

	quick := t0.Add(2 * time.Second)
	c.learn(3_000_150, quick, quick.Add(100*time.Microsecond))
	require.Equal(t, quick.Add(50*time.Microsecond), c.local(3_000_150))
}

// When the two clocks disagree by more than the round trips allow, one of them
// stepped: the new comparison counts.
func TestServerClockFollowsAStep(t *testing.T) {
	var c serverClock
	t0 := time.Now()
	c.learn(1_000_000, t0, t0.Add(200*time.Microsecond))
	later := t0.Add(time.Second)
	c.learn(90_000_000_000, later, later.Add(2*time.Millisecond))
	require.Equal(t, later.Add(time.Millisecond), c.local(90_000_000_000))
}
