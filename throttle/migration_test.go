package throttle_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
	"github.com/weirq/weir/throttle/throttletest"
)

// bare is a policy for tests that are not about its values.
func bare(key, parent string) throttle.Policy {
	return throttle.Policy{
		Key: key, Limit: throttle.Limit{Rate: 1_000_000, Period: time.Second, Burst: 1_000_000}, MaxInFlight: 100_000, Parent: parent,
	}
}

// shardsWithJobs are the shards whose due sets name a key.
func shardsWithJobs(t *testing.T, q *throttle.Queue, server *throttletest.Redis, key string) (shards []int) {
	t.Helper()
	for shard := range throttle.DefaultShards {
		if n := server.Client().HLen(t.Context(), script.ShardName(shard)+"j:"+key).Val(); n > 0 {
			shards = append(shards, shard)
		}
	}
	return shards
}

// A family is in one shard, whoever asks for it.
func TestFamilyLivesInTheShardOfItsRoot(t *testing.T) {
	server := throttletest.StartRedis(t)
	q, ctx := queueOn(t, server.Client()), t.Context()
	require.NoError(t, q.SetPolicies(ctx, []throttle.Policy{bare("root", ""), bare("middle", "root"), bare("leaf/*", "middle")}))
	root := throttle.ShardOf(q, "root")
	var jobs []throttle.Job
	for i := range 40 {
		jobs = append(jobs, numbered(fmt.Sprintf("leaf/%d", i), 3)...)
	}
	jobs = append(jobs, numbered("middle", 3)...)
	receipts, err := q.EnqueueMany(ctx, jobs)
	require.NoError(t, err)
	for i, r := range receipts {
		require.Equal(t, []any{jobs[i].Key, jobs[i].ID, int64(i%3 + 1)}, []any{r.Key, r.ID, r.Position})
	}
	for i := 0; i < len(jobs); i += 3 {
		require.Equal(t, []int{root}, shardsWithJobs(t, q, server, jobs[i].Key))
	}
	fresh := queueOn(t, server.Client()) // has learnt nothing
	job, err := fresh.Job(ctx, "leaf/7", "1")
	require.NoError(t, err)
	require.EqualValues(t, 2, job.Position)
	fresh = queueOn(t, server.Client())
	info, err := fresh.Key(ctx, "leaf/7")
	require.NoError(t, err)
	require.EqualValues(t, 3, info.Waiting)
	require.Equal(t, "middle", info.Policy.Parent)
	fresh = queueOn(t, server.Client())
	e, err := fresh.Explain(ctx, "leaf/7")
	require.NoError(t, err)
	require.Equal(t, []string{"leaf/7", "middle", "root"}, []string{e.Chain[0].Key, e.Chain[1].Key, e.Chain[2].Key})
	fresh = queueOn(t, server.Client())
	n, err := fresh.Purge(ctx, "leaf/7")
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	again, err := fresh.EnqueueMany(ctx, jobs[:3])
	require.NoError(t, err)
	require.True(t, again[0].Duplicate)
}

// Jobs that wait move when their key gets a parent, loses it or gets another, while
// others are enqueued: each is handed over once, and those of a key in order.
func TestJobsMoveWithTheirFamily(t *testing.T) {
	server := throttletest.StartRedis(t)
	q, ctx := queueOn(t, server.Client()), t.Context()
	require.NoError(t, q.SetPolicies(ctx, []throttle.Policy{bare("*", ""), bare("p1", ""), bare("p2", "")}))
	require.NoError(t, q.Pause(ctx, "k/*"))
	keys := []string{"k/1", "k/2", "k/3", "k/4"}
	sent := make(map[string]int)
	more := func(n int) {
		for _, key := range keys {
			var jobs []throttle.Job
			for range n {
				jobs = append(jobs, throttle.Job{Key: key, ID: fmt.Sprintf("%06d", sent[key]), Type: "t"})
				sent[key]++
			}
			jobs[0].NotBefore = time.Now().Add(500 * time.Millisecond)
			_, err := queueOn(t, server.Client()).EnqueueMany(ctx, jobs)
			require.NoError(t, err)
		}
	}
	out := handedOver(t, q)
	settled := func(want func(key string) int) {
		require.Eventually(t, func() bool {
			for _, key := range keys {
				if at := shardsWithJobs(t, q, server, key); len(at) != 1 || at[0] != want(key) {
					return false
				}
			}
			return true
		}, 20*time.Second, 20*time.Millisecond)
	}
	natural := throttle.ShardOf(q, "p1")
	second := throttle.ShardOf(q, "p2")
	require.NotEqual(t, natural, second)

	more(300)
	require.NoError(t, q.SetPolicy(ctx, bare("k/*", "p1")))
	more(300)
	settled(func(string) int { return natural })
	require.NoError(t, q.SetPolicy(ctx, bare("k/*", "p2")))
	more(10)
	settled(func(string) int { return second })
	require.NoError(t, q.RemovePolicy(ctx, "k/*"))
	more(10)
	fresh := queueOn(t, server.Client())
	settled(func(key string) int { return throttle.ShardOf(fresh, key) })

	for _, key := range keys { // whose delayed jobs are back in their places
		require.Eventually(t, func() bool {
			k, err := q.Key(ctx, key)
			return err == nil && k.Delayed == 0
		}, 10*time.Second, 20*time.Millisecond)
	}
	require.NoError(t, q.Resume(ctx, "k/*"))
	got := make(map[string][]string)
	for range len(keys) * sent["k/1"] {
		select {
		case h := <-out:
			got[h.Key] = append(got[h.Key], h.ID)
		case <-time.After(20 * time.Second):
			require.Fail(t, "jobs are missing", "%d of k/1", len(got["k/1"]))
		}
	}
	for _, key := range keys {
		var want []string
		for i := range sent[key] {
			want = append(want, fmt.Sprintf("%06d", i))
		}
		require.Equal(t, strings.Join(want, " "), strings.Join(got[key], " "))
	}
	select {
	case h := <-out:
		require.Fail(t, "one more", "%v", h)
	case <-time.After(300 * time.Millisecond):
	}
}

// A job in flight when its key moves ends where it was; one that fails then moves too.
func TestJobInFlightEndsWhereItWas(t *testing.T) {
	server := throttletest.StartRedis(t)
	q, ctx := queueOn(t, server.Client()), t.Context()
	require.NoError(t, q.SetPolicies(ctx, []throttle.Policy{bare("*", ""), bare("p", "")}))
	out := handedOver(t, q)
	_, err := q.EnqueueMany(ctx, numbered("k", 2))
	require.NoError(t, err)
	p, err := throttle.NewPermits(q, 0)
	require.NoError(t, err)
	first, second := <-out, <-out
	require.NoError(t, q.SetPolicy(ctx, bare("k", "p")))
	permits, err := p.Depart(ctx, time.Minute, p.NewToken(), []throttle.Hold{first, second})
	require.NoError(t, err)
	require.Equal(t, throttle.Go, permits[0].Status)
	first.Run, second.Run = permits[0].Run, permits[1].Run
	held, err := p.Finish(ctx, []throttle.Ending{{Hold: first, What: throttle.Done}, {Hold: second, What: throttle.Retry}})
	require.NoError(t, err)
	require.Equal(t, []bool{true, true}, held)
	select {
	case again := <-out:
		require.Equal(t, "1", again.ID)
		require.Equal(t, throttle.ShardOf(q, "p"), again.Shard)
		permits, err := p.Depart(ctx, time.Minute, p.NewToken(), []throttle.Hold{again})
		require.NoError(t, err)
		require.Equal(t, 2, permits[0].Attempt)
	case <-time.After(10 * time.Second):
		require.Fail(t, "it did not come back")
	}
}

// What contradicts itself, or what is stored, is refused and changes nothing.
func TestContradictoryPoliciesAreRefused(t *testing.T) {
	server := throttletest.StartRedis(t)
	q, ctx := queueOn(t, server.Client()), context.Background()
	l := limit(t, "10/s", 1)
	require.NoError(t, q.SetPolicies(ctx, []throttle.Policy{{Key: "p", Limit: l}, {Key: "c", Limit: l, Parent: "p", Minimum: throttle.Rate{Cost: 8, Per: time.Second}}}))
	before, err := q.Policies(ctx)
	require.NoError(t, err)
	for text, change := range map[string]func() error{
		"parent":                      func() error { return q.SetPolicy(ctx, throttle.Policy{Key: "d", Limit: l, Parent: "nobody"}) },
		`the live policy of "p": par`: func() error { return q.SetPolicy(ctx, throttle.Policy{Key: "p", Limit: l, Parent: "c"}) },
		`the file policy of "c": min`: func() error { return q.SetPolicy(ctx, throttle.Policy{Key: "p", Limit: limit(t, "5/s", 1)}) },
		"policies[0].quotas[0].per": func() error {
			return q.SetPolicies(ctx, []throttle.Policy{{Key: "p", Limit: l, Quotas: []throttle.Quota{{Limit: 1}}}})
		},
		"policies[1].hours.zone": func() error {
			return q.SetPolicies(ctx, []throttle.Policy{{Key: "p", Limit: l}, {Key: "q", Limit: l, Hours: &throttle.Hours{
				Zone: "Europe/Atlantis", Open: []throttle.Opening{{From: 0, To: time.Hour}},
			}}})
		},
		"policies[0].parent": func() error {
			return q.SetPolicies(ctx, []throttle.Policy{{Key: "p", Limit: l, Parent: "c"}, {Key: "c", Limit: l, Parent: "p"}})
		},
	} {
		err := change()
		require.ErrorIs(t, err, throttle.ErrInvalid, text)
		require.ErrorContains(t, err, text)
	}
	after, err := q.Policies(ctx)
	require.NoError(t, err)
	require.Equal(t, before, after)

	// A file that takes the parent of a live policy away is refused as well.
	require.NoError(t, q.SetPolicy(ctx, throttle.Policy{Key: "d", Limit: l, Parent: "p"}))
	require.ErrorContains(t, q.SetPolicies(ctx, []throttle.Policy{{Key: "*", Limit: l}}), `the live policy of "d": parent`)
}

func TestNameOfAPolicyDecidesItsPrecedence(t *testing.T) {
	server := throttletest.StartRedis(t)
	q, ctx := queueOn(t, server.Client()), t.Context()
	with := func(key string, n int64) throttle.Policy {
		return throttle.Policy{Key: key, Limit: throttle.Limit{Rate: n, Period: time.Second, Burst: 1}}
	}
	governs := func(want int64, source throttle.Source, name string) {
		t.Helper()
		e, err := q.Explain(ctx, "shop/a")
		require.NoError(t, err)
		require.Equal(t, want, e.Chain[0].Policy.Limit.Rate)
		require.Equal(t, []any{source, name, want}, []any{e.Candidates[0].Source, e.Candidates[0].Policy.Key, e.Candidates[0].Policy.Limit.Rate})
		info, err := q.Key(ctx, "shop/a")
		require.NoError(t, err)
		require.Equal(t, want, info.Policy.Limit.Rate)
	}
	governs(10, throttle.BuiltIn, "*")
	file := []throttle.Policy{with("*", 1)}
	add := func(p throttle.Policy) {
		t.Helper()
		file = append(file, p)
		require.NoError(t, q.SetPolicies(ctx, file))
	}
	require.NoError(t, q.SetPolicies(ctx, file))
	governs(1, throttle.File, "*")
	require.NoError(t, q.SetPolicy(ctx, with("*", 2)))
	governs(2, throttle.Live, "*")
	add(with("shop*", 3))
	governs(3, throttle.File, "shop*")
	add(with("*op/a", 4))
	governs(4, throttle.File, "*op/a") // of two as long, the first in byte order
	add(with("shop/*", 5))
	governs(5, throttle.File, "shop/*")
	brought := with("", 6)
	require.NoError(t, q.Pause(ctx, "shop/a"))
	_, err := q.Enqueue(ctx, throttle.Job{Key: "shop/a", Type: "t", Policy: &brought})
	require.NoError(t, err)
	governs(6, throttle.Brought, "shop/a")
	add(with("shop/a", 7))
	governs(7, throttle.File, "shop/a")
	require.NoError(t, q.SetPolicy(ctx, with("shop/a", 8)))
	governs(8, throttle.Live, "shop/a")
	require.NoError(t, q.RemovePolicy(ctx, "shop/a"))
	governs(7, throttle.File, "shop/a")

	e, err := q.Explain(ctx, "shop/a")
	require.NoError(t, err)
	var order []string
	for _, c := range e.Candidates {
		order = append(order, fmt.Sprintf("%s %s %d", c.Source, c.Policy.Key, c.Policy.Limit.Rate))
	}
	require.Equal(t, []string{
		"file shop/a 7", "job shop/a 6", "file shop/* 5", "file *op/a 4", "file shop* 3", "live * 2", "file * 1", "built in * 10",
	}, order)
}

// Holds, and what quotas count, go where the key goes.
func TestHoldsAndQuotasMoveWithTheirKey(t *testing.T) {
	server := throttletest.StartRedis(t)
	q, ctx := queueOn(t, server.Client()), t.Context()
	quota := func(parent string) throttle.Policy {
		p := bare("k", parent)
		p.Quotas = []throttle.Quota{
			{Limit: 3, Per: 24 * time.Hour, Window: throttle.Fixed}, {Limit: 5, Per: time.Hour, Window: throttle.Sliding},
		}
		return p
	}
	require.NoError(t, q.SetPolicies(ctx, []throttle.Policy{bare("*", ""), bare("p", ""), quota("")}))
	require.NotEqual(t, throttle.ShardOf(q, "k"), throttle.ShardOf(q, "p"))
	out := handedOver(t, q)
	p, err := throttle.NewPermits(q, 0)
	require.NoError(t, err)
	_, err = q.EnqueueMany(ctx, numbered("k", 10))
	require.NoError(t, err)
	for range 3 {
		h := <-out
		permits, err := p.Depart(ctx, time.Minute, p.NewToken(), []throttle.Hold{h})
		require.NoError(t, err)
		require.Equal(t, throttle.Go, permits[0].Status)
		h.Run = permits[0].Run
		_, err = p.Finish(ctx, []throttle.Ending{{Hold: h, What: throttle.Done}})
		require.NoError(t, err)
	}
	_, err = q.EnqueueMany(ctx, numbered("held", 3))
	require.NoError(t, err)
	for range 3 {
		<-out
	}
	require.NoError(t, q.Pause(ctx, "held"))
	_, err = q.Enqueue(ctx, throttle.Job{Key: "held", ID: "more", Type: "t"})
	require.NoError(t, err)
	require.NoError(t, q.SetPolicies(ctx, []throttle.Policy{bare("*", ""), bare("p", ""), quota("p"), bare("held", "p")}))
	require.Eventually(t, func() bool {
		at := shardsWithJobs(t, q, server, "k")
		return len(at) == 1 && at[0] == throttle.ShardOf(q, "p")
	}, 10*time.Second, 20*time.Millisecond)
	select {
	case h := <-out:
		require.Fail(t, "it was held", "%v", h)
	case <-time.After(500 * time.Millisecond):
	}
	e, err := q.Explain(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, throttle.ByQuota, e.Cause)
	e, err = q.Explain(ctx, "held")
	require.NoError(t, err)
	require.Equal(t, throttle.ByPause, e.Cause)
	require.NoError(t, q.Resume(ctx, "held"))
	select {
	case h := <-out:
		require.Equal(t, "more", h.ID)
	case <-time.After(10 * time.Second):
		require.Fail(t, "it was resumed")
	}
}

// A job that came and ended does not come a second time, when two schedulers move it or
// one does so again.
func TestJobThatCameAndEndedDoesNotComeAgain(t *testing.T) {
	server := throttletest.StartRedis(t)
	q, ctx := queueOn(t, server.Client()), t.Context()
	scripts := script.NewSet()
	run := func(c *script.Call) *script.Call {
		t.Helper()
		require.NoError(t, script.Run(ctx, server.Client(), c))
		return c
	}
	_, err := q.EnqueueMany(ctx, numbered("k", 2))
	require.NoError(t, err)
	old := throttle.ShardOf(q, "k")
	require.NoError(t, q.SetPolicies(ctx, []throttle.Policy{bare("p", ""), bare("k", "p")}))
	run(scripts.Release(old, releasing("1")))
	m, ok := run(scripts.Emigrate(old, 10)).Moving()
	require.True(t, ok)
	require.Len(t, m.IDs, 2)
	require.EqualValues(t, 2, run(scripts.Immigrate(m)).Count())
	jobs := holds(released(run(scripts.Release(m.Home, releasing("2")))))
	require.Len(t, jobs, 2)
	_, slots := run(scripts.Depart(m.Home, lead, lease, "1", jobs)).Slots()
	run(scripts.Finish(m.Home, lead, ends(script.Done, departed(jobs, slots))))
	require.EqualValues(t, 2, run(scripts.Immigrate(m)).Count())
	require.Empty(t, released(run(scripts.Release(m.Home, releasing("3")))))
	require.EqualValues(t, 2, run(scripts.Forget(old, m)).Count())

	// And one that goes back and forth is let in each time.
	_, err = queueOn(t, server.Client()).EnqueueMany(ctx, numbered("k", 1))
	require.NoError(t, err)
	for _, parent := range []string{"", "p", "", "p"} {
		require.NoError(t, q.SetPolicies(ctx, []throttle.Policy{bare("p", ""), bare("k", parent)}))
		for shard := range throttle.DefaultShards {
			run(scripts.Release(shard, releasing(fmt.Sprint("sweep", parent, shard, time.Now().UnixNano()))))
		}
		moved := 0
		for shard := range throttle.DefaultShards {
			for {
				m, ok := run(scripts.Emigrate(shard, 10)).Moving()
				if !ok || len(m.IDs) == 0 {
					break
				}
				run(scripts.Immigrate(m))
				moved += int(run(scripts.Forget(shard, m)).Count())
			}
		}
		require.LessOrEqual(t, moved, 1)
	}
}

// An exact policy without a parent takes a key out of its pattern's family everywhere.
func TestExactPolicyTakesAKeyOutOfItsFamily(t *testing.T) {
	server := throttletest.StartRedis(t)
	q, ctx := queueOn(t, server.Client()), t.Context()
	require.NoError(t, q.SetPolicies(ctx, []throttle.Policy{bare("*", ""), bare("p", ""), bare("t-*", "p")}))
	require.NoError(t, q.Pause(ctx, "t-*"))
	natural := throttle.ShardOf(q, "t-0")
	require.NotEqual(t, natural, throttle.ShardOf(q, "p"))
	_, err := q.EnqueueMany(ctx, numbered("t-0", 5)) // learns the route
	require.NoError(t, err)
	_ = handedOver(t, q)
	require.NoError(t, queueOn(t, server.Client()).SetPolicy(ctx, bare("t-0", "")))
	_, err = q.EnqueueMany(ctx, numbered("t-0", 6))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		at := shardsWithJobs(t, q, server, "t-0")
		return len(at) == 1 && at[0] == natural
	}, 10*time.Second, 20*time.Millisecond)
}

func TestNobodyIsTheNameOfTheProgram(t *testing.T) {
	q, ctx := queueOn(t, throttletest.StartRedis(t).Client()), t.Context()
	require.NoError(t, q.As("").Pause(ctx, "k"))
	changes, err := q.Trail(ctx, 1)
	require.NoError(t, err)
	require.NotEmpty(t, changes[0].Who)
	e, err := q.Explain(ctx, "k")
	require.NoError(t, err)
	require.True(t, e.Paused)
}

// What the other side said, and that a key is disabled, goes along.
func TestWhatWasSaidMovesWithItsKey(t *testing.T) {
	server := throttletest.StartRedis(t)
	q, ctx := queueOn(t, server.Client()), t.Context()
	own := func(parent string) []throttle.Policy {
		resting, disabled := bare("k", parent), bare("off", parent)
		disabled.Circuit = &throttle.Circuit{Failures: 1, Rest: time.Millisecond, Disable: time.Millisecond}
		return []throttle.Policy{bare("*", ""), bare("p", ""), resting, disabled}
	}
	require.NoError(t, q.SetPolicies(ctx, own("")))
	out := handedOver(t, q)
	p, err := throttle.NewPermits(q, 0)
	require.NoError(t, err)
	end := func(key string, e throttle.Ending) {
		t.Helper()
		_, err := q.Enqueue(ctx, throttle.Job{Key: key, Type: "t"})
		require.NoError(t, err)
		h := <-out
		permits, err := p.Depart(ctx, time.Minute, p.NewToken(), []throttle.Hold{h})
		require.NoError(t, err)
		require.Equal(t, throttle.Go, permits[0].Status)
		h.Run = permits[0].Run
		time.Sleep(time.Until(permits[0].At)) // a call leaves at its slot, which a circuit puts off
		e.Hold, e.What = h, throttle.Done
		_, err = p.Finish(ctx, []throttle.Ending{e})
		require.NoError(t, err)
	}
	end("k", throttle.Ending{Fared: throttle.OverLimit, Rest: time.Hour})
	end("off", throttle.Ending{Fared: throttle.Failed})
	end("off", throttle.Ending{Fared: throttle.Failed})
	_, err = q.EnqueueMany(ctx, append(numbered("k", 5), numbered("off", 5)...))
	require.NoError(t, err)
	require.NoError(t, q.SetPolicies(ctx, own("p")))
	require.Eventually(t, func() bool {
		for _, key := range []string{"k", "off"} {
			if at := shardsWithJobs(t, q, server, key); len(at) != 1 || at[0] != throttle.ShardOf(q, "p") {
				return false
			}
		}
		return true
	}, 10*time.Second, 20*time.Millisecond)
	select {
	case h := <-out:
		require.Fail(t, "it rests", "%v", h)
	case <-time.After(500 * time.Millisecond):
	}
	e, err := q.Explain(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, throttle.ByCoolDown, e.Cause)
	require.WithinDuration(t, time.Now().Add(time.Hour), e.CoolUntil, time.Minute)
	e, err = q.Explain(ctx, "off")
	require.NoError(t, err)
	require.Equal(t, throttle.ByDisabled, e.Cause)
}
