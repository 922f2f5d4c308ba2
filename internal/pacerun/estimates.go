package main

import (
	"context"
	"time"

	"github.com/weirq/weir/throttle"
)

// estimates compares when jobs of a backlog leave with what their receipts foretold.
func estimates(ctx context.Context, s *sheet, e *env) error {
	return foretold(ctx, s, e, throttle.Policy{Key: "estimated", Limit: limit("50/s", 10)}, 5000, nil)
}

// changes does so across a pause, a change of rate and the edge of a quota: what is
// looked up two seconds after each.
func changes(ctx context.Context, s *sheet, e *env) error {
	const n = 3000
	p := throttle.Policy{
		Key: "estimated", Limit: limit("50/s", 1),
		Quotas: []throttle.Quota{{Limit: 1000, Per: 30 * time.Second, Window: throttle.Fixed}},
	}
	return foretold(ctx, s, e, p, n, []change{
		{"paused and resumed", 10 * time.Second, func(q *throttle.Queue) error {
			if err := q.Pause(ctx, p.Key); err != nil {
				return err
			}
			if err := rest(ctx, 5*time.Second); err != nil {
				return err
			}
			return q.Resume(ctx, p.Key)
		}},
		{"rate doubled", 10 * time.Second, func(q *throttle.Queue) error {
			p.Limit = limit("100/s", 1)
			return q.SetPolicy(ctx, p)
		}},
		{"over the edge of a quota", 30 * time.Second, func(*throttle.Queue) error { return nil }},
	})
}

// A change is something after which estimates must hold again.
type change struct {
	name  string
	after time.Duration // since the one before
	make  func(q *throttle.Queue) error
}

// promise is a set of estimates, which hold as long as nothing changes.
type promise struct {
	name   string
	at     time.Time
	until  time.Time
	leaves map[string]time.Time
}

// foretold puts a backlog in and keeps what was estimated, at first and after changes.
func foretold(ctx context.Context, s *sheet, e *env, p throttle.Policy, n int, changes []change) error {
	r, err := newReceiver(nil)
	if err != nil {
		return err
	}
	defer r.close()
	sys, err := newSystem(ctx, e.client, p)
	if err != nil {
		return err
	}
	defer sys.close()
	if err := e.start(sys, e.url); err != nil {
		return err
	}
	jobs, ids := calls(r, p.Key, n)
	receipts, err := sys.queue.EnqueueMany(ctx, jobs)
	if err != nil {
		return err
	}
	now := promise{name: "receipts", at: time.Now(), leaves: make(map[string]time.Time)}
	for _, receipt := range receipts {
		now.leaves[receipt.ID] = receipt.EstimatedDeparture
	}
	var kept []promise
	for _, c := range changes {
		if err := rest(ctx, c.after); err != nil {
			return err
		}
		now.until = time.Now()
		kept = append(kept, now)
		if err := c.make(sys.queue); err != nil {
			return err
		}
		if err := rest(ctx, 2*time.Second); err != nil {
			return err
		}
		if now, err = lookUp(ctx, sys.queue, c.name, p.Key, ids); err != nil {
			return err
		}
	}
	if err := until(ctx, 10*time.Minute, func() bool { return r.count() == n }); err != nil {
		return err
	}
	now.until = time.Now()
	for _, promise := range append(kept, now) {
		promise.judge(s, sys)
	}
	return nil
}

// lookUp asks for some of the jobs that have not left.
func lookUp(ctx context.Context, q *throttle.Queue, name, key string, ids []string) (promise, error) {
	p := promise{name: name, at: time.Now(), leaves: make(map[string]time.Time)}
	for i := 0; i < len(ids); i += 20 {
		info, err := q.Job(ctx, key, ids[i])
		if err != nil || info.State != throttle.Waiting {
			continue // it has left
		}
		p.leaves[ids[i]] = info.EstimatedDeparture
	}
	return p, ctx.Err()
}

// judge compares estimates with departures, as a share of what is allowed: a hundredth
// of the wait or 250 ms, whichever is larger.
func (p promise) judge(s *sheet, sys *system) {
	worst, judged := 0.0, 0
	for _, d := range sys.departures() {
		told, ok := p.leaves[d.ID]
		if !ok || d.At.Before(p.at) || d.At.After(p.until) {
			continue
		}
		judged++
		wait := d.At.Sub(p.at)
		allowed := max(wait/100, 250*time.Millisecond)
		worst = max(worst, told.Sub(d.At).Abs().Seconds()/allowed.Seconds())
	}
	s.atLeast(p.name+": estimates judged", float64(judged), 10)
	s.atMost(p.name+": worst error, of what is allowed", worst, 1)
}
