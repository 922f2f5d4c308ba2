package throttle

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle/internal/script"
)

// A Change is an entry of the audit trail.
type Change struct {
	At  time.Time // by the clock of Redis, to the millisecond
	Who string    // see Queue.As
	// What is "load", "policy", "pause", "drain", "cooldown", "resume", "purge", "release",
	// "replay", "discard" or "max_waiting".
	What string
	Name string // exact key or pattern; empty for a load of the config file
	// Old and New are what was and what is, as people read it; empty for nothing. Of what is
	// done with one job, New is its id.
	Old, New string
}

// Trail lists the latest changes, the newest first, at most most of them. Each shard
// keeps its newest ten thousand or a little more.
func (q *Queue) Trail(ctx context.Context, most int) ([]Change, error) {
	if most < 1 {
		return nil, invalid("most", most, "a positive number")
	}
	var changes []Change
	for shard := range q.store.shards {
		entries, err := q.store.client.XRevRangeN(ctx, script.TrailKey(shard), "+", "-", int64(most)).Result()
		if err != nil {
			return nil, fmt.Errorf("read the audit trail: %w", err)
		}
		for _, e := range entries {
			changes = append(changes, change(e))
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return b.At.Compare(a.At) })
	return changes[:min(most, len(changes))], nil
}

func change(e redis.XMessage) Change {
	field := func(name string) string {
		s, _ := e.Values[name].(string)
		return s
	}
	ms, _, _ := strings.Cut(e.ID, "-")
	n, _ := strconv.ParseInt(ms, 10, 64)
	c := Change{At: time.UnixMilli(n), Who: field("who"), What: field("what"), Name: field("name")}
	c.Old, c.New = legible(c.What, field("old")), legible(c.What, field("new"))
	return c
}

// legible is what a script stored in the words of the documentation.
func legible(what, text string) string {
	switch what {
	case "policy":
		if p, err := policyFromText(AnyKey, text); err == nil {
			return p.summary()
		}
	case script.Pause, script.Drain, script.CoolDown, script.Resume:
		return parseHold(text).String()
	}
	return text
}

// holdState is what holds a name, as stored: see policy.lua.
type holdState struct {
	paused, draining bool
	cool             time.Time
}

func parseHold(text string) (h holdState) {
	var paused, draining, cool, resumed int64
	if n, _ := fmt.Sscan(text, &paused, &draining, &cool, &resumed); n == 4 {
		h.paused, h.draining = paused == 1, draining == 1
		if cool > 0 {
			h.cool = time.UnixMicro(cool)
		}
	}
	return h
}

func (h holdState) String() string {
	var parts []string
	if h.paused {
		parts = append(parts, "paused")
	}
	if h.draining {
		parts = append(parts, "draining")
	}
	if !h.cool.IsZero() {
		parts = append(parts, "cool until "+h.cool.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	return strings.Join(parts, ", ")
}

// summary is a policy in one line.
func (p Policy) summary() string {
	parts := []string{p.rate().String(), fmt.Sprintf("burst %d", p.Limit.Burst)}
	for _, q := range p.Quotas {
		parts = append(parts, q.String())
	}
	parts = append(parts, fmt.Sprintf("max in flight %d", p.MaxInFlight))
	if p.Parent != "" {
		parts = append(parts, fmt.Sprintf("parent %q weight %d", p.Parent, p.Weight))
	}
	if p.Minimum != (Rate{}) {
		parts = append(parts, "minimum "+p.Minimum.String())
	}
	if p.Hours != nil {
		for _, o := range p.Hours.Open {
			parts = append(parts, "open "+o.String())
		}
		if p.Hours.Zone != "" {
			parts = append(parts, "in "+p.Hours.Zone)
		}
	}
	if p.Ramp != nil {
		parts = append(parts, fmt.Sprintf("ramp from %g %% over %v", 100*p.Ramp.From, p.Ramp.Over))
	}
	return strings.Join(append(parts, p.lineSummary()...), ", ")
}

// lineSummary is what a policy says of the jobs that wait, and of what is kept of them.
func (p Policy) lineSummary() (parts []string) {
	if p.Ordered {
		parts = append(parts, "ordered")
	}
	if p.Events {
		parts = append(parts, "events")
	}
	if p.Listen != "" {
		parts = append(parts, "listen "+string(p.Listen))
	}
	if p.Floor != (Rate{}) {
		parts = append(parts, "floor "+p.Floor.String())
	}
	if c := p.Circuit; c != nil {
		parts = append(parts, fmt.Sprintf("circuit of %d failures or a ratio of %g, rests %v, disables after %v", c.Failures, c.Ratio, c.Rest, c.Disable))
	}
	if p.MaxWaiting > 0 {
		parts = append(parts, fmt.Sprintf("max waiting %d, then %s", p.MaxWaiting, strings.ReplaceAll(string(p.Overflow), "_", " ")))
	}
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"ageing", p.Ageing}, {"job ttl", p.JobTTL}, {"done jobs kept for", p.KeepDone}} {
		if f.d > 0 {
			parts = append(parts, fmt.Sprintf("%s %v", f.name, f.d))
		}
	}
	if p.History > 0 {
		parts = append(parts, fmt.Sprintf("history of %d", p.History))
	}
	return parts
}
