package throttle_test

import (
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
)

// The scripts and the model answer the same, to the last bit, whatever is called in
// whatever order at whatever time.
func TestScriptsAgreeWithTheModel(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		checks(t, d.few(50))
		rapid.Check(t, func(t *rapid.T) {
			d.reset(t)
			a := &agreement{d: d, model: newModel(d.now, d.mini != nil)}
			t.Repeat(map[string]func(*rapid.T){
				"enqueue": a.enqueue, "release": a.release, "depart": a.depart, "finish": a.finish,
				"extend": a.extend, "reap": a.reap, "policies": a.policies, "step": a.step,
				"purge": a.purge, "dead": a.dead, "": a.compare,
			})
		})
	})
}

// checks bounds how many random runs a test makes, unless more were asked for.
func checks(t *testing.T, n int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	before := f.Value.String()
	if before != f.DefValue {
		return
	}
	require.NoError(t, f.Value.Set(strconv.Itoa(n)))
	t.Cleanup(func() { require.NoError(t, f.Value.Set(before)) })
}

// agreement makes each call on both sides.
type agreement struct {
	d     *driven
	model *model
	given []script.Hold // numbers that were given out, the newest last; most are stale
	calls int
}

var agreedKeys = []string{"a", "b c", "{x}:d"}

func key(t *rapid.T) string { return rapid.SampledFrom(agreedKeys).Draw(t, "key") }

func somePolicy() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		per := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour, throttle.MaxPeriod}).Draw(t, "period")
		return policyText(
			rapid.SampledFrom([]int64{1, 3, 7, 10, 1000, throttle.MaxRate}).Draw(t, "rate"), per,
			rapid.SampledFrom([]int64{1, 2, 5, 100, throttle.MaxBurst}).Draw(t, "burst"),
			rapid.SampledFrom([]int{1, 3, 100}).Draw(t, "max"),
		)
	})
}

// token is that of a new call, or that of the one before.
func (a *agreement) token(t *rapid.T) string {
	if !rapid.Bool().Draw(t, "repeated") {
		a.calls++
	}
	return strconv.Itoa(a.calls)
}

// held picks from the numbers that were given out.
func (a *agreement) held(t *rapid.T) []script.Hold {
	if len(a.given) == 0 {
		return []script.Hold{{Key: "a", ID: "1", Release: 1, Run: 1}} // nobody's
	}
	recent := a.given[max(0, len(a.given)-12):]
	return rapid.SliceOfN(rapid.SampledFrom(recent), 1, 4).Draw(t, "held")
}

func (a *agreement) enqueue(t *rapid.T) {
	jobs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) script.Entry {
		id := fmt.Sprintf("j%d", rapid.IntRange(1, 40).Draw(t, "id"))
		e := script.Entry{
			Key: key(t), ID: id, Job: []byte("job " + id),
			Cost: rapid.SampledFrom([]int64{1, 1, 1, 2, 5, 1000, throttle.MaxCost}).Draw(t, "cost"),
			Pool: rapid.SampledFrom([]string{throttle.DefaultPool, "other"}).Draw(t, "pool"),
		}
		if rapid.IntRange(0, 3).Draw(t, "delayed") == 0 {
			e.NotBefore = a.model.real + rapid.Int64Range(-1000, 3_000_000).Draw(t, "not before")
		}
		if rapid.IntRange(0, 5).Draw(t, "brings a policy") == 0 {
			e.Policy = somePolicy().Draw(t, "policy")
		}
		return e
	}), 1, 6).Draw(t, "jobs")

	placed := a.d.run(t, a.d.scripts.Enqueue(0, -1, jobs)).Placed(len(jobs))
	wantNow, want := a.model.enqueue(jobs)
	require.Equal(t, []int64{wantNow, a.model.now}, []int64{placed.Now, placed.ShardNow})
	require.Equal(t, want, placed.Places)
}

func (a *agreement) release(t *rapid.T) {
	token := a.token(t)
	r := script.Releasing{
		Lead: lead, Lease: rapid.SampledFrom([]int64{1_000_000, lease}).Draw(t, "lease"),
		Most:  rapid.SampledFrom([]int{1, 3, 256}).Draw(t, "most"),
		Round: "r" + token, Scheduler: rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "scheduler"), Token: token,
	}
	round := a.d.run(t, a.d.scripts.Release(0, r)).Released()
	wantDue, wantLease, want := a.model.release(r)
	require.Equal(t, want, round.Jobs)
	require.Equal(t, wantLease, round.Lease)
	require.InDelta(t, wantDue, round.Due, 1+float64(wantDue)*1e-13) // a kept reply has 14 digits
	a.given = append(a.given, holds(round.Jobs)...)
}

func (a *agreement) depart(t *rapid.T) {
	token, jobs := a.token(t), a.held(t)
	lead := rapid.SampledFrom([]int64{lead, 10_000}).Draw(t, "lead")
	now, slots := a.d.run(t, a.d.scripts.Depart(0, lead, lease, token, jobs)).Slots()
	wantNow, want := a.model.depart(lead, lease, token, jobs)
	require.Equal(t, wantNow, now)
	require.Equal(t, want, slots)
	a.given = append(a.given, departed(jobs, slots)...)
}

func (a *agreement) finish(t *rapid.T) {
	var ends []script.End
	for _, h := range a.held(t) {
		ends = append(ends, script.End{
			Hold: h, Reason: "because of this",
			What:  rapid.SampledFrom([]string{script.Done, script.Done, script.Retry, script.Dead, script.Return}).Draw(t, "what"),
			Delay: rapid.Int64Range(0, 2_000_000).Draw(t, "delay"),
		})
	}
	require.Equal(t, a.model.finish(lead, ends), a.d.run(t, a.d.scripts.Finish(0, lead, ends)).Held())
}

func (a *agreement) extend(t *rapid.T) {
	jobs := a.held(t)
	require.Equal(t, a.model.extend(lease, jobs), a.d.run(t, a.d.scripts.Extend(0, lease, jobs)).Held())
}

func (a *agreement) reap(t *rapid.T) {
	most := rapid.IntRange(1, 5).Draw(t, "most")
	next, jobs := a.d.run(t, a.d.scripts.Overdue(0, most)).Overdue()
	wantNext, want := a.model.overdue(most)
	require.Equal(t, want, jobs)
	require.Equal(t, wantNext, next)
	var verdicts []script.Verdict
	for _, j := range jobs {
		verdicts = append(verdicts, script.Verdict{Hold: j.Hold, Extend: rapid.Bool().Draw(t, "extend")})
	}
	if len(a.given) > 0 && rapid.Bool().Draw(t, "also one that is not overdue") {
		verdicts = append(verdicts, script.Verdict{Hold: a.held(t)[0]})
	}
	if len(verdicts) > 0 {
		require.Equal(t, a.model.reap(lead, lease, verdicts), a.d.run(t, a.d.scripts.Reap(0, lead, lease, verdicts)).Held())
	}
}

func (a *agreement) policies(t *rapid.T) {
	policies := rapid.MapOfN(rapid.SampledFrom(append([]string{throttle.AnyKey}, agreedKeys...)), somePolicy(), 0, 3).Draw(t, "policies")
	var pairs []string
	for key, text := range policies {
		pairs = append(pairs, key, text)
	}
	require.Equal(t, a.model.setPolicies(policies), a.d.run(t, a.d.policies(pairs...)).Count())
}

func (a *agreement) step(t *rapid.T) {
	by := rapid.SampledFrom([]time.Duration{
		time.Microsecond, 999 * time.Microsecond, 10 * time.Millisecond, 50 * time.Millisecond, 50 * time.Millisecond,
		100 * time.Millisecond, 333_333 * time.Microsecond, time.Second, 10 * time.Second, time.Minute, time.Hour,
		-time.Microsecond, -20 * time.Millisecond, -time.Second, -time.Hour,
	}).Draw(t, "by")
	a.d.advance(t, by)
	a.model.step(by)
}

func (a *agreement) purge(t *rapid.T) {
	p := script.Purging{
		Key: key(t), State: rapid.SampledFrom([]string{script.ListWaiting, script.ListDelayed}).Draw(t, "line"),
		From: rapid.Int64Range(0, 3).Draw(t, "from"), Most: rapid.Int64Range(1, 5).Draw(t, "most"),
	}
	looked, removed := a.d.run(t, a.d.scripts.Purge(0, p)).Purged()
	require.Equal(t, looked, removed)
	require.Equal(t, a.model.purge(p), removed)
}

func (a *agreement) dead(t *rapid.T) {
	most := rapid.IntRange(1, 5).Draw(t, "most")
	toServer, more, letters := a.d.run(t, a.d.scripts.Ended(0, script.Dead, "", "", "", most)).Letters()
	require.Equal(t, a.model.deadLetters(most), letters)
	require.Equal(t, len(letters) == most, more)
	require.Equal(t, a.model.real-a.model.now, toServer)
}

// compare looks at the state through what only reads; and an audit finds nothing to
// repair, whatever was called.
func (a *agreement) compare(t *rapid.T) {
	for _, k := range agreedKeys {
		counts := a.d.run(t, a.d.scripts.Stat(0, k)).Counts()
		counts.Outlook = "" // forecasts have tests of their own
		require.Equal(t, a.model.stat(k), counts)
		_, repairs := a.d.run(t, a.d.scripts.Audit(0, k, "0", lease)).Audited()
		a.model.begin()
		require.Zero(t, repairs)
	}
	k, id := key(t), fmt.Sprintf("j%d", rapid.IntRange(1, 40).Draw(t, "id"))
	f := a.d.run(t, a.d.scripts.Find(0, k, id)).Found()
	want, alive := a.model.find(k, id)
	require.Equal(t, alive, f.OK && f.Ended == 0)
	if alive {
		f.Job, f.Log, f.Outlook = "", "", ""
		require.Equal(t, want, f)
	}
	require.Equal(t, a.model.wakes, a.d.wakes(t))
}
