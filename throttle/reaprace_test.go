package throttle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
)

// The reaper has read its list, and the holder of a job acts before the reaper does:
// the job is the holder's, a thousand times.
func TestReaperNeverTakesBackWhatItsHolderDealtWith(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "1000000/s", 1000), MaxInFlight: 100})
		for i, id := range ids(d.most(1000)) {
			d.run(t, d.scripts.Enqueue(0, -1, entries("k", id)))
			job := holds(released(d.run(t, d.scripts.Release(0, releasing(id)))))
			require.Len(t, job, 1)
			_, slots := d.run(t, d.scripts.Depart(0, lead, lease, id, job)).Slots()
			job = departed(job, slots)
			d.advance(t, lease*time.Microsecond+time.Second)
			_, overdue := d.run(t, d.scripts.Overdue(0, 10)).Overdue()
			require.Len(t, overdue, 1)

			switch i % 4 {
			case 0, 1:
				require.Equal(t, []bool{true}, d.run(t, d.scripts.Finish(0, lead, ends(script.Done, job))).Held())
			case 2:
				require.Equal(t, []bool{true}, d.run(t, d.scripts.Extend(0, lease, job)).Held())
			case 3: // it ended, and a job of the same id was enqueued and released meanwhile
				d.run(t, d.scripts.Finish(0, lead, ends(script.Done, job)))
				d.run(t, d.scripts.Enqueue(0, -1, entries("k", id)))
				job = holds(released(d.run(t, d.scripts.Release(0, releasing(id+"again")))))
				require.Len(t, job, 1)
			}
			verdict := []script.Verdict{{Hold: overdue[0].Hold}}
			require.Equal(t, []bool{false}, d.run(t, d.scripts.Reap(0, lead, lease, verdict)).Held())
			require.Zero(t, d.run(t, d.scripts.Stat(0, "k")).Counts().Waiting)
			require.Empty(t, released(d.run(t, d.scripts.Release(0, releasing(id+"b")))))
			if i%4 > 1 {
				require.Equal(t, []bool{true}, d.run(t, d.scripts.Finish(0, lead, ends(script.Done, job))).Held())
			}
		}
	})
}

// Whoever held a job loses every say in it once it was taken back, even when it was
// finished by another and a job of the same id was enqueued since.
func TestLateHolderHasNoSay(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "1000/s", 100), MaxInFlight: 100})
		d.run(t, d.scripts.Enqueue(0, -1, entries("k", "a")))
		late := holds(released(d.run(t, d.scripts.Release(0, releasing("1")))))
		_, slots := d.run(t, d.scripts.Depart(0, lead, lease, "1", late)).Slots()
		going := departed(late, slots)

		hasNoSay := func() {
			t.Helper()
			before := d.run(t, d.scripts.Stat(0, "k")).Counts()
			for _, jobs := range [][]script.Hold{late, going} {
				_, slots := d.run(t, d.scripts.Depart(0, lead, lease, "late", jobs)).Slots()
				require.Equal(t, script.Gone, slots[0].Status)
				require.Equal(t, []bool{false}, d.run(t, d.scripts.Extend(0, lease, jobs)).Held())
				require.Equal(t, []bool{false}, d.run(t, d.scripts.Finish(0, lead, ends(script.Done, jobs))).Held())
			}
			after := d.run(t, d.scripts.Stat(0, "k")).Counts()
			require.Equal(t, []int64{before.Waiting, before.InFlight}, []int64{after.Waiting, after.InFlight})
		}

		d.advance(t, lease*time.Microsecond)
		d.run(t, d.scripts.Reap(0, lead, lease, []script.Verdict{{Hold: going[0]}}))
		hasNoSay() // it waits
		again := holds(released(d.run(t, d.scripts.Release(0, releasing("2")))))
		hasNoSay() // another one has it
		_, slots = d.run(t, d.scripts.Depart(0, lead, lease, "2", again)).Slots()
		hasNoSay()
		d.run(t, d.scripts.Finish(0, lead, ends(script.Done, departed(again, slots))))
		hasNoSay() // it is gone

		d.advance(t, time.Second)
		d.run(t, d.scripts.Enqueue(0, -1, entries("k", "a")))
		hasNoSay()
		again = holds(released(d.run(t, d.scripts.Release(0, releasing("3")))))
		require.Len(t, again, 1)
		hasNoSay()
		_, slots = d.run(t, d.scripts.Depart(0, lead, lease, "3", again)).Slots()
		require.Equal(t, script.Go, slots[0].Status)
		hasNoSay()
	})
}

// A call whose answer was lost is made again and changes nothing more.
func TestRepeatedCallsAreAnsweredAgain(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "10/s", 3), MaxInFlight: 100})
		d.run(t, d.scripts.Enqueue(0, -1, entries("k", ids(20)...)))
		place := d.run(t, d.scripts.Enqueue(0, -1, entries("k", "000002"))).Placed(1).Places[0]
		require.Equal(t, script.Known, place.How)
		require.EqualValues(t, 2, place.Position)

		first := released(d.run(t, d.scripts.Release(0, releasing("1"))))
		require.NotEmpty(t, first)
		require.Equal(t, first, released(d.run(t, d.scripts.Release(0, releasing("1")))))
		_, slots := d.run(t, d.scripts.Depart(0, lead, lease, "1", holds(first))).Slots()
		level := d.run(t, d.scripts.Stat(0, "k")).Counts().MicroLevel
		_, again := d.run(t, d.scripts.Depart(0, lead, lease, "1", holds(first))).Slots()
		require.Equal(t, slots, again)
		require.Equal(t, level, d.run(t, d.scripts.Stat(0, "k")).Counts().MicroLevel)
	})
}
