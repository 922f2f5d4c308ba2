package throttle

import (
	"context"
	"fmt"
	"time"

	"github.com/weirq/weir/throttle/internal/script"
)

// A Cause is what holds a job.
type Cause string

// Causes.
const (
	ByNothing  Cause = ""          // it is about to leave
	ByRate     Cause = "rate"      // the bucket has to leak
	ByQuota    Cause = "quota"     // a quota is used up
	ByParent   Cause = "parent"    // its siblings' turn
	ByPause    Cause = "pause"     // until Resume
	ByCoolDown Cause = "cooldown"  // until the cool-down ends
	ByCircuit  Cause = "circuit"   // its calls fail: until one is tried again
	ByDisabled Cause = "disabled"  // its calls failed for too long: until Resume of the key
	ByHours    Cause = "hours"     // outside of the policy's hours
	ByInFlight Cause = "in_flight" // the most jobs are in flight: until one ends
	ByOrder    Cause = "order"     // the key is ordered, and an earlier job has not ended
	ByDelay    Cause = "delay"     // until its not-before, or its next attempt
	ByWorkers  Cause = "workers"   // jobs were released and no worker takes them up
	// ByScheduler means that it could be released and no scheduler does.
	ByScheduler Cause = "scheduler"
	ByIdle      Cause = "idle" // there is no job
)

// An Explanation tells what governs a key and what holds its next job.
type Explanation struct {
	Key                        string
	At                         time.Time // of this answer, by the clock of Redis
	Waiting, Delayed, InFlight int64     // jobs
	// The job that this is about: the one asked for or, for a key, the one that waits and
	// leaves next, or is delayed and leaves first, or is in flight. Job is empty if there is
	// none.
	Job              string
	JobState         string // Waiting, Delayed, Released or Running
	Position         int64  // in the line; 0 outside it
	Cause            Cause
	Holder           string    // the key that holds it: Key or one of its parents
	Until            time.Time // when it lets go, by the clock of Redis; zero if only an event can tell
	Paused, Draining bool
	CoolUntil        time.Time // zero if it does not cool down
	// Limit is that of the key as it is now: one that adapts may be below its policy's.
	Limit Limit
	// Chain is the key and its parents, from the key up.
	Chain []Link
	// Candidates are the policies that could govern the key, in the order of their
	// precedence: the first one does.
	Candidates []Candidate
}

// A Link is a key or a parent with its state.
type Link struct {
	Key    string
	Policy Policy
	Level  float64 // cost in the bucket
}

// A Candidate is a policy that matches a key, under the name that it stands for.
type Candidate struct {
	Source Source
	Policy Policy
}

// Explain tells what governs a key and what holds its next job, at this moment.
func (q *Queue) Explain(ctx context.Context, key string) (Explanation, error) {
	return q.explain(ctx, key, "")
}

// ExplainJob is Explain for one job of the key. What holds the line holds all jobs in
// it: a job that is not the next one waits for those before it as well. The error is
// [ErrNoJob] if there is none, or if it has ended.
func (q *Queue) ExplainJob(ctx context.Context, key, id string) (Explanation, error) {
	if err := validateToken("id", id); err != nil {
		return Explanation{}, err
	}
	e, err := q.explain(ctx, key, id)
	if err == nil && e.JobState == "" {
		err = fmt.Errorf("explain job %q of key %q: %w", id, key, ErrNoJob)
	}
	return e, err
}

func (q *Queue) explain(ctx context.Context, key, id string) (Explanation, error) {
	if err := ValidateKey(key); err != nil {
		return Explanation{}, err
	}
	var e script.Explanation
	err := q.store.follow(ctx, key, func(shard int) *script.Call {
		return q.store.scripts.Explain(shard, key, id)
	}, func(_ int, c *script.Call) int {
		e = c.Explanation()
		return e.Home
	})
	if err != nil {
		return Explanation{}, fmt.Errorf("explain key %q: %w", key, err)
	}
	return explanation(key, e)
}

func explanation(key string, e script.Explanation) (Explanation, error) {
	out := Explanation{
		Key: key, At: time.UnixMicro(e.Now), Waiting: e.Waiting, Delayed: e.Delayed, InFlight: e.Flight,
		Job: e.ID, JobState: e.State, Position: e.Position,
		Cause: Cause(e.Cause), Holder: e.Holder, Paused: e.Paused, Draining: e.Draining,
	}
	if e.Wait >= 0 {
		out.Until = out.At.Add(microseconds(e.Wait))
	}
	if e.CoolUntil > 0 {
		out.CoolUntil = time.UnixMicro(e.CoolUntil)
	}
	for i, l := range e.Chain {
		p, err := policyFromText(l.Key, l.Policy)
		if err != nil {
			return Explanation{}, fmt.Errorf("explain key %q: %w", key, err)
		}
		if i == 0 {
			out.Limit = Limit{Rate: p.Limit.Rate, Period: microseconds(e.Period), Burst: e.Burst}
		}
		out.Chain = append(out.Chain, Link{Key: l.Key, Policy: p, Level: float64(l.MicroLevel) / 1e6})
	}
	for _, c := range e.Candidates {
		name := c.Name
		if name == "" {
			name = AnyKey
		}
		if p, err := policyFromText(name, c.Policy); err == nil {
			out.Candidates = append(out.Candidates, Candidate{Source: Source(c.Source), Policy: p})
		}
	}
	return out, nil
}
