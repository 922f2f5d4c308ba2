package throttle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirq/weir/throttle"
)

// keepsItsWord verifies the histories of keys: whatever the scripts let leave, no window
// broke the policy in force.
func (s *simulation) keepsItsWord(keys ...string) {
	q := s.d.queue(s.t)
	for _, key := range keys {
		h, err := q.History(context.Background(), key)
		if errors.Is(err, throttle.ErrNoHistory) {
			continue // nothing departed, or more than a day ago
		}
		require.NoError(s.t, err)
		v := h.Verify()
		require.Empty(s.t, v.Violations, "of %q", key)
		require.Zero(s.t, v.Damaged+v.Unjudged)
		require.Empty(s.t, v.Unchecked)
	}
}

// What the scripts write of their departures is clean, in every history of a family,
// whatever happens meanwhile: limits that change, workers that stop, slots that are missed,
// and runs that turn out to cost more or less.
func TestHistoriesOfScriptsAreClean(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		checks(t, d.few(20))
		rapid.Check(t, func(t *rapid.T) {
			d.reset(t)
			family := drawFamily(t)
			var keys []string
			for i := range family {
				family[i].History = 10_000
				keys = append(keys, family[i].Key)
			}
			d.family(t, family...)
			s := troubled(t, d)
			if rapid.Bool().Draw(t, "settled") {
				s.cost = func(x departure) int64 { return rapid.Int64Range(0, 2*x.Cost).Draw(t, "true cost") }
			}
			for _, key := range keys {
				s.enqueue(drawJobs(t, key, rapid.SampledFrom([]int64{1, 3, 30}).Draw(t, "max cost"))...)
			}
			for range rapid.IntRange(0, 3).Draw(t, "troubles") {
				s.forward(between(t, 0, 3*time.Second)())
				if rapid.Bool().Draw(t, "workers stop") {
					s.stop()
					s.forward(between(t, 0, 9*time.Second)())
					s.start()
					continue
				}
				var pairs []string
				for _, p := range family {
					p.Limit = drawLimit(t)
					pairs = append(pairs, p.Key, throttle.PolicyText(p))
				}
				s.call(d.scripts.Policies(0, 1, rules(pairs...)))
			}
			s.drain(100_000 * 24 * time.Hour)
			s.keepsItsWord(keys...)
		})
	})
}
