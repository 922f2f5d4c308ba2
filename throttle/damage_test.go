package throttle_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
)

// name is that of a part of a key's state: "b", "w", "d", "j" or "s".
func name(part, key string) string { return script.ShardName(0) + part + ":" + key }

// damage overwrites a field of a hash.
func (d *driven) damage(t *testing.T, hash, field, value string) {
	t.Helper()
	require.NoError(t, d.client.HSet(context.Background(), hash, field, value).Err())
}

func TestDamagedJobGoesToTheDeadAndTheOthersGoOn(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		q := d.queue(t)
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "100/s", 20), MaxInFlight: 100})
		d.run(t, d.scripts.Enqueue(0, -1, entries("k", ids(10)...)))
		d.damage(t, name("j", "k"), "000003", "}{")

		permits, err := throttle.NewPermits(q, 0)
		require.NoError(t, err)
		var jobs []throttle.Hold
		for _, h := range holds(released(d.run(t, d.scripts.Release(0, releasing("1"))))) {
			jobs = append(jobs, throttle.Hold{Key: h.Key, ID: h.ID, Release: h.Release})
		}
		answers, err := permits.Depart(t.Context(), time.Second, "1", jobs)
		require.NoError(t, err)
		var endings []throttle.Ending
		for i, p := range answers {
			require.Equal(t, throttle.Go, p.Status)
			jobs[i].Run = p.Run
			e := throttle.Ending{Hold: jobs[i], What: throttle.Done}
			if p.Damaged != nil {
				require.Equal(t, "000003", jobs[i].ID)
				e.What, e.Reason = throttle.Dead, p.Damaged.Error()
			}
			endings = append(endings, e)
		}
		held, err := permits.Finish(t.Context(), endings)
		require.NoError(t, err)
		require.NotContains(t, held, false)

		page, err := q.DeadLetters(t.Context(), throttle.Page{})
		require.NoError(t, err)
		require.Len(t, page.Jobs, 1)
		dead, err := q.Job(t.Context(), "k", "000003")
		require.NoError(t, err)
		require.Equal(t, throttle.Job{Key: "k", ID: "000003", Cost: 1, Pool: throttle.DefaultPool}, dead.Job)
		require.Error(t, dead.Damaged)
		require.Equal(t, "the stored job is damaged", page.Jobs[0].Reason)
		require.Equal(t, 1, page.Jobs[0].Attempts)
	})
}

func TestDamagedRecordHoldsNothingUp(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		for _, when := range []string{"waiting", "delayed", "in flight"} {
			t.Run(when, func(t *testing.T) {
				d.reset(t)
				s := paced(t, d, "10/s", 2)
				jobs := entries("k", ids(10)...)
				if when == "delayed" {
					jobs[2].NotBefore = d.now.Add(time.Second).UnixMicro()
				}
				s.enqueue(jobs...)
				if when == "in flight" {
					s.latency = func() time.Duration { return s.lead }
					for d.client.HGet(t.Context(), name("s", "k"), "000003").Val() == "" {
						s.forward(10 * time.Millisecond)
					}
				}
				d.damage(t, name("s", "k"), "000003", "}{")
				s.forward(s.lease + time.Second)
				_, overdue := s.call(d.scripts.Overdue(0, 10)).Overdue() // puts it back into the line
				require.Empty(t, overdue)
				s.drain(time.Minute)
				require.ElementsMatch(t, ids(10), s.jobs("k"))
				s.keepsLimit(limit(t, "10/s", 2), "k")
			})
		}
	})
}

func TestDamagedBucketCountsAsIdle(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		for _, field := range []string{"level", "at", "policy", "hold", "family", "version", "seq", "backlog", "out", "flight"} {
			t.Run(field, func(t *testing.T) {
				d.reset(t)
				s := paced(t, d, "10/s", 2)
				s.enqueue(entries("k", ids(20)...)...)
				s.forward(time.Second)
				d.damage(t, name("b", "k"), field, "abc")
				s.forward(time.Second / 4)
				require.NoError(t, d.client.HDel(t.Context(), name("b", "k"), field).Err())
				from := len(s.departures)
				s.drain(time.Minute)
				require.Equal(t, ids(20), s.jobs("k"))
				s.departures = s.departures[from:]
				s.keepsLimit(limit(t, "10/s", 2), "k")
			})
		}
	})
}

func TestDamagedPolicyFallsBackToTheDefault(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 2)
		d.damage(t, script.FileKey(0), "*", "10 0")
		s.enqueue(entries("k", ids(5)...)...)
		s.drain(time.Minute)
		s.keepsLimit(throttle.DefaultPolicy.Limit, "k")
	})
}

// Nothing is left of a key that is idle, and what governs it is the same each time it
// comes back.
func TestDrainedKeyLeavesNothingBehind(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		own := policyText(2, time.Second, 1, 7)
		s := newSimulation(t, d)
		for i := range 20 {
			jobs := entries("k", strconv.Itoa(i))
			jobs[0].Policy = own
			s.enqueue(jobs...)
			s.drain(time.Minute)
			at := d.run(t, d.scripts.Stat(0, "k")).Counts()
			require.Equal(t, own, at.Policy)
			s.forward(100 * time.Millisecond)
		}
		s.keepsLimit(limit(t, "2/s", 1), "k")
		d.advance(t, 10*time.Second)
		require.ElementsMatch(t, []string{script.ShardName(0) + "clock"}, withoutReplies(d.names(t)))
		d.advance(t, 2*time.Minute)
		require.ElementsMatch(t, []string{script.ShardName(0) + "clock", script.ShardName(0) + "stats"}, d.names(t))
	})
}

// withoutReplies leaves out the replies that are kept for a minute, and the counters.
func withoutReplies(names []string) []string {
	var out []string
	for _, n := range names {
		if !strings.HasPrefix(n, script.ShardName(0)+"reply") && n != script.ShardName(0)+"stats" {
			out = append(out, n)
		}
	}
	return out
}

func TestAuditRepairsWhatWasDamaged(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 5)
		s.poll = 1000 * time.Hour
		s.enqueue(entries("k", ids(10)...)...)
		jobs := holds(released(d.run(t, d.scripts.Release(0, releasing("1"))))) // and its worker dies
		require.NotEmpty(t, jobs)
		ctx := t.Context()
		require.NoError(t, d.client.ZRem(ctx, script.ShardName(0)+"lease", jobs[0].ID+" k").Err())

		audit := func() (repairs int64) {
			_, repairs = d.run(t, d.scripts.Audit(0, "k", "0", lease)).Audited()
			return repairs
		}
		require.EqualValues(t, 1, audit(), "a lease is given again")
		require.Zero(t, audit())
		d.advance(t, lease*time.Microsecond)
		_, overdue := d.run(t, d.scripts.Overdue(0, 100)).Overdue()
		require.Len(t, overdue, len(jobs))
		var verdicts []script.Verdict
		for _, j := range overdue {
			verdicts = append(verdicts, script.Verdict{Hold: j.Hold})
		}
		d.run(t, d.scripts.Reap(0, lead, lease, verdicts))

		require.NoError(t, d.client.ZAdd(ctx, name("f", "k"), redis.Z{Member: "nobody"}).Err())
		d.damage(t, name("b", "k"), "out", "5")
		require.EqualValues(t, 1, audit(), "what is in flight is counted anew")
		require.Zero(t, audit())
		require.Zero(t, d.run(t, d.scripts.Stat(0, "k")).Counts().InFlight)

		require.NoError(t, d.client.ZRem(ctx, script.DueKey(0), "k").Err())
		require.EqualValues(t, 1, audit(), "the line is looked at again")
		require.Zero(t, audit())
		s.now = d.now
		s.drain(time.Minute)
		require.Equal(t, ids(10), s.jobs("k"))
	})
}

// A parent that takes more for released than is would wait for departures that never
// come.
func TestAuditCountsWhatIsBelowAParent(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.family(t, throttle.Policy{Key: "p", Limit: limit(t, "10/s", 1)}, throttle.Policy{Key: "c", Limit: limit(t, "100/s", 1), Parent: "p"})
		s := newSimulation(t, d)
		s.enqueue(entries("c", ids(30)...)...)
		s.forward(time.Second)
		kin := strings.Fields(d.client.HGet(t.Context(), name("b", "p"), "kin").Val())
		kin[0] = "1000"
		d.damage(t, name("b", "p"), "kin", strings.Join(kin, " "))
		s.forward(5 * time.Second)
		before := len(s.departures)
		s.forward(5 * time.Second)
		require.Len(t, s.departures, before, "it stands still")
		_, repairs := s.call(d.scripts.Audit(0, "p", "0", lease)).Audited()
		require.EqualValues(t, 1, repairs)
		_, repairs = s.call(d.scripts.Audit(0, "p", "0", lease)).Audited()
		require.Zero(t, repairs)
		s.drain(time.Minute)
		s.keepsParent(limit(t, "10/s", 1))
	})
}

// No damage stops the other keys of a shard.
func TestDamageOfRulesStopsNoOtherKey(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		base := "1000 1000000 1000 100 "
		for _, tail := range []string{`{"q":[[5,1000000]]}`, `{"q":[[5,1000000,{},""]]}`, `{"open":["",60,120,180]}`, `{"q":[[1,1e300,"s",""]]}`} {
			d.reset(t)
			d.run(t, d.policies("bad", base+tail, "worse", "0 0 0 0"))
			s := newSimulation(t, d)
			for _, key := range []string{"bad", "worse", "good"} {
				s.enqueue(entries(key, ids(3)...)...)
			}
			s.drain(time.Minute)
		}
		d.reset(t)
		s := paced(t, d, "100/s", 10)
		s.enqueue(entries("k", ids(5)...)...)
		ctx := t.Context()
		require.NoError(t, d.client.Set(ctx, script.ShardName(0)+"sweep", "junk", 0).Err())
		require.NoError(t, d.client.ZAdd(ctx, script.ShardName(0)+"lease", redis.Z{Score: 0, Member: "junk"}).Err())
		s.call(d.scripts.Overdue(0, 10))
		s.drain(time.Minute)
	})
}

// Numbers that are none, or out of all bounds, count as those of an idle bucket.
func TestDamagedNumbersCountAsIdle(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		for _, field := range []string{"level", "at", "seq", "backlog", "out", "flight", "home", "ahead", "kin"} {
			values := []string{"nan", "1e300", "-5", "inf inf inf inf inf inf inf inf inf"}
			if d.mini != nil {
				values = []string{"inf"}
			}
			for _, value := range values {
				d.reset(t)
				d.family(t, throttle.Policy{Key: "p", Limit: limit(t, "100/s", 10)}, throttle.Policy{Key: "k", Limit: limit(t, "50/s", 5), Parent: "p"})
				s := newSimulation(t, d)
				s.enqueue(entries("k", ids(20)...)...)
				s.forward(100 * time.Millisecond)
				for _, key := range []string{"k", "p"} {
					d.damage(t, name("b", key), field, value)
					s.forward(50 * time.Millisecond)
					s.call(d.scripts.Audit(0, key, "0", lease))
				}
				s.forward(5 * time.Second)
				for _, key := range []string{"k", "p"} {
					s.call(d.scripts.Audit(0, key, "0", lease))
				}
				s.drain(time.Minute)
			}
		}
	})
}

// The children of a parent whose bucket was lost are found by the audit.
func TestAuditFindsTheChildrenOfALostParent(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.family(t, throttle.Policy{Key: "p", Limit: limit(t, "10/s", 1)}, throttle.Policy{Key: "c", Limit: limit(t, "100/s", 1), Parent: "p"})
		s := newSimulation(t, d)
		s.poll = 1000 * time.Hour
		s.enqueue(entries("c", ids(10)...)...)
		s.stop()
		s.forward(time.Second)
		require.NoError(t, d.client.Del(t.Context(), name("b", "p")).Err())
		s.start()
		s.forward(time.Second)
		s.call(d.scripts.Audit(0, "c", "0", lease))
		s.drain(time.Minute)
	})
}
