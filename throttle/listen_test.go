package throttle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirq/weir/throttle"
)

// A listener ends runs of a key one after the other on a driven clock.
type listener struct {
	t       require.TestingT
	d       *driven
	q       *throttle.Queue
	permits *throttle.Permits
	n       int
}

func newListener(t require.TestingT, d *driven) *listener {
	d.reset(t)
	l := &listener{t: t, d: d, q: d.queue(t)}
	var err error
	l.permits, err = throttle.NewPermits(l.q, 0)
	require.NoError(t, err)
	return l
}

// run lets the next job of a key, a new one if none waits, run for a millisecond and ends it; false if it may not leave.
func (l *listener) run(key string, fared throttle.Fared, rest time.Duration) bool {
	ctx := l.d.t.Context()
	l.n++
	_, err := l.q.Enqueue(ctx, throttle.Job{Key: key, ID: fmt.Sprint(l.n), Type: "t"})
	require.NoError(l.t, err)
	jobs := released(l.d.run(l.t, l.d.scripts.Release(0, releasing(fmt.Sprint(l.n)))))
	if len(jobs) == 0 {
		return false
	}
	h := throttle.Hold{Key: jobs[0].Key, ID: jobs[0].ID, Release: jobs[0].Release}
	gone, err := l.permits.Depart(ctx, time.Minute, l.permits.NewToken(), []throttle.Hold{h})
	require.NoError(l.t, err)
	if gone[0].Status != throttle.Go {
		return false
	}
	l.d.advance(l.t, time.Millisecond)
	h.Run = gone[0].Run
	held, err := l.permits.Finish(ctx, []throttle.Ending{{Hold: h, What: throttle.Done, Fared: fared, Rest: rest}})
	require.NoError(l.t, err)
	require.Equal(l.t, []bool{true}, held)
	return true
}

func (l *listener) explain(key string) throttle.Explanation {
	e, err := l.q.Explain(l.d.t.Context(), key)
	require.NoError(l.t, err)
	return e
}

func (l *listener) policy(p throttle.Policy) {
	require.NoError(l.t, l.q.SetPolicy(l.d.t.Context(), p))
}

func TestWhatIsSaidFollowsThePolicy(t *testing.T) {
	onBoth(t, func(d *driven) {
		p := throttle.Policy{Key: "k", Limit: limit(d.t, "100/s", 10), MaxInFlight: 1000}
		t := d.t
		t.Run("one that does not listen any more", func(t *testing.T) {
			l := newListener(t, d)
			l.policy(p)
			require.True(t, l.run("k", throttle.OverLimit, time.Hour))
			require.False(t, l.run("k", "", 0))
			require.Equal(t, throttle.ByCoolDown, l.explain("k").Cause)
			deaf := p
			deaf.Listen = throttle.Ignore
			l.policy(deaf)
			require.True(t, l.run("k", "", 0))
		})
		t.Run("a floor that comes later", func(t *testing.T) {
			l := newListener(t, d)
			p := p
			p.Listen = throttle.Adapt
			l.policy(p)
			for range 5 {
				require.True(t, l.run("k", throttle.OverLimit, 0))
				d.advance(t, 10*time.Second)
			}
			require.Equal(t, 32*time.Second, l.explain("k").Limit.Period, "half of it, five times")
			p.Floor = throttle.Rate{Cost: 50, Per: time.Second}
			l.policy(p)
			require.Equal(t, throttle.Limit{Rate: 100, Period: 2 * time.Second, Burst: 5}, l.explain("k").Limit)
			p.Listen, p.Floor = throttle.Obey, throttle.Rate{}
			l.policy(p)
			require.Equal(t, p.Limit, l.explain("k").Limit)
		})
		t.Run("a disabled key without jobs", func(t *testing.T) {
			l := newListener(t, d)
			p := p
			p.Circuit = &throttle.Circuit{Failures: 1, Rest: time.Millisecond, Disable: time.Second}
			l.policy(p)
			require.True(t, l.run("k", throttle.Failed, 0))
			d.advance(t, 2*time.Second)
			require.True(t, l.run("k", throttle.Failed, 0))
			for range 3 {
				d.advance(t, 48*time.Hour)
				require.False(t, l.run("k", "", 0))
				require.Equal(t, throttle.ByDisabled, l.explain("k").Cause)
				_, err := l.q.Purge(t.Context(), "k")
				require.NoError(t, err)
			}
			require.NoError(t, l.q.Resume(t.Context(), "k"))
			require.True(t, l.run("k", "", 0))
		})
		t.Run("a ratio over idle times", func(t *testing.T) {
			l := newListener(t, d)
			p := p
			p.Circuit = &throttle.Circuit{Ratio: 0.5, Rest: time.Hour}
			l.policy(p)
			n := 0
			for ; n < 60; n++ {
				fared := throttle.Failed
				if n%4 == 3 {
					fared = throttle.Succeeded
				}
				if !l.run("k", fared, 0) {
					break
				}
				d.advance(t, 5*time.Minute)
			}
			require.Less(t, n, 25, "three of four fail")
			require.Equal(t, throttle.ByCircuit, l.explain("k").Cause)
			p.Circuit = nil
			l.policy(p)
			require.True(t, l.run("k", "", 0), "without a circuit none is open")
		})
	})
}

// Whatever is said, the limit of a key that adapts is between its floor and its policy's.
func TestAdaptedLimitsStayWithinTheirBounds(t *testing.T) {
	d := drivenRedis(t)
	rapid.Check(t, func(rt *rapid.T) {
		l := newListener(rt, d)
		p := throttle.Policy{
			Key: "k", Limit: limit(rt, "1000/s", rapid.Int64Range(1, 100).Draw(rt, "burst")), MaxInFlight: 1000, Listen: throttle.Adapt,
			Floor: throttle.Rate{Cost: rapid.Int64Range(1, 1000).Draw(rt, "floor"), Per: time.Second},
		}
		l.policy(p)
		for range rapid.IntRange(1, 40).Draw(rt, "runs") {
			fared := rapid.SampledFrom([]throttle.Fared{"", throttle.Succeeded, throttle.Failed, throttle.OverLimit}).Draw(rt, "fared")
			l.run("k", fared, time.Duration(rapid.Int64Range(0, 1000).Draw(rt, "rest"))*time.Millisecond)
			d.advance(rt, time.Duration(rapid.Int64Range(0, 5000).Draw(rt, "pause"))*time.Millisecond)
			now := l.explain("k").Limit
			rate := float64(now.Rate) / now.Period.Seconds()
			require.LessOrEqual(rt, rate, 1000.0)
			require.GreaterOrEqual(rt, rate, float64(p.Floor.Cost)*0.999)
			require.LessOrEqual(rt, now.Burst, p.Limit.Burst)
			require.GreaterOrEqual(rt, now.Burst, int64(1))
		}
	})
}
