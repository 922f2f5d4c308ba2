package throttle_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
)

// What holds the next job is named, with the key where it is held and until when.
func TestExplainNamesWhatHoldsAKey(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
		morning, err := throttle.ParseOpening("mon-fri 08:00-12:00")
		require.NoError(t, err)
		slow, fast := limit(t, "1/m", 1), limit(t, "100/s", 100)
		for name, c := range map[string]struct {
			policies []throttle.Policy
			before   func(s *simulation)
			cause    throttle.Cause
			holder   string
			until    time.Duration // after the simulation's now; 0: only an event can tell
		}{
			"nobody": {cause: throttle.ByIdle, holder: "k", before: func(*simulation) {}},
			"nothing": {cause: throttle.ByNothing, holder: "k", until: time.Nanosecond, before: func(s *simulation) {
				s.down = true
				s.enqueue(entries("k", "1")...)
			}, policies: []throttle.Policy{{Key: "k", Limit: fast}}},
			"rate": {cause: throttle.ByRate, holder: "k", until: 30 * time.Second, policies: []throttle.Policy{{Key: "k", Limit: slow}}},
			"quota": {cause: throttle.ByQuota, holder: "k", until: time.Hour - 30*time.Second, policies: []throttle.Policy{{
				Key: "k", Limit: fast, Quotas: []throttle.Quota{{Limit: 2, Per: time.Hour, Window: throttle.Fixed}},
			}}},
			"parent's rate": {cause: throttle.ByRate, holder: "p", until: 30 * time.Second, policies: []throttle.Policy{
				{Key: "p", Limit: slow}, {Key: "k", Limit: fast, Parent: "p"},
			}},
			"pause": {cause: throttle.ByPause, holder: "k", policies: []throttle.Policy{{Key: "k", Limit: fast}}, before: func(s *simulation) {
				s.control(script.Pause, time.Time{}, "k*")
				s.enqueue(entries("k", "1")...)
				s.forward(30 * time.Second)
			}},
			"parent's pause": {cause: throttle.ByPause, holder: "p", policies: []throttle.Policy{
				{Key: "p", Limit: fast}, {Key: "k", Limit: fast, Parent: "p"},
			}, before: func(s *simulation) {
				s.control(script.Pause, time.Time{}, "p")
				s.enqueue(entries("k", "1")...)
				s.forward(30 * time.Second)
			}},
			"cool-down": {cause: throttle.ByCoolDown, holder: "k", until: 30 * time.Second, policies: []throttle.Policy{{Key: "k", Limit: fast}}, before: func(s *simulation) {
				s.control(script.CoolDown, s.now.Add(time.Minute), "k")
				s.enqueue(entries("k", "1")...)
				s.forward(30 * time.Second)
			}},
			"hours": {cause: throttle.ByHours, holder: "k", until: 20*time.Hour - 30*time.Second, policies: []throttle.Policy{{
				Key: "k", Limit: fast, Hours: &throttle.Hours{Open: []throttle.Opening{morning}},
			}}},
			"in flight": {cause: throttle.ByInFlight, holder: "k", policies: []throttle.Policy{{Key: "k", Limit: fast, MaxInFlight: 1}}, before: func(s *simulation) {
				s.work = time.Hour
				s.enqueue(entries("k", "1", "2")...)
				s.forward(30 * time.Second)
			}},
			"order, while one runs": {cause: throttle.ByOrder, holder: "k", policies: []throttle.Policy{{Key: "k", Limit: fast, Ordered: true}}, before: func(s *simulation) {
				s.work = time.Hour
				s.enqueue(entries("k", "1", "2")...)
				s.forward(30 * time.Second)
			}},
			"order, between two attempts": {cause: throttle.ByOrder, holder: "k", until: 30 * time.Second, policies: []throttle.Policy{{Key: "k", Limit: fast, Ordered: true}}, before: func(s *simulation) {
				s.end = func(departure) (string, time.Duration) { return script.Retry, time.Minute }
				s.enqueue(entries("k", "1", "2")...)
				s.forward(30*time.Second + 2*time.Millisecond)
			}},
			"no workers": {cause: throttle.ByWorkers, holder: "k", policies: []throttle.Policy{{Key: "k", Limit: fast}}, before: func(s *simulation) {
				s.stop()
				s.enqueue(entries("k", "1", "2")...)
				s.forward(30 * time.Second)
			}},
			"no workers for a line": {cause: throttle.ByWorkers, holder: "k", policies: []throttle.Policy{{Key: "k", Limit: slow}}, before: func(s *simulation) {
				s.stop()
				s.enqueue(entries("k", "1", "2")...)
				s.forward(30 * time.Second)
			}},
			"no scheduler": {cause: throttle.ByScheduler, holder: "k", policies: []throttle.Policy{{Key: "k", Limit: fast}}, before: func(s *simulation) {
				s.down = true
				s.enqueue(entries("k", "1", "2")...)
				s.forward(30 * time.Second)
			}},
			"delay": {cause: throttle.ByDelay, holder: "k", until: 30 * time.Second, policies: []throttle.Policy{{Key: "k", Limit: fast}}, before: func(s *simulation) {
				jobs := entries("k", "1")
				jobs[0].NotBefore = s.now.Add(time.Minute).UnixMicro()
				s.enqueue(jobs...)
				s.forward(30 * time.Second)
			}},
		} {
			t.Run(name, func(t *testing.T) {
				d.reset(t)
				d.set(t, noon)
				d.family(t, c.policies...)
				s := newSimulation(t, d)
				if c.before == nil {
					s.enqueue(entries("k", "1", "2", "3")...)
					s.forward(30 * time.Second)
				} else {
					c.before(s)
				}
				d.set(t, s.now)
				e, err := d.queue(t).Explain(context.Background(), "k")
				require.NoError(t, err)
				require.Equal(t, []any{c.cause, c.holder}, []any{e.Cause, e.Holder})
				if c.until == 0 {
					require.Zero(t, e.Until)
					return
				}
				require.WithinDuration(t, s.now.Add(c.until), e.Until, 100*time.Millisecond)
			})
		}
	})
}
