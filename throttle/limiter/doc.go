// Package limiter answers at once whether something may happen now: allow, or deny with the exact
// wait. It is for decisions that cannot queue, such as an API's own door or a call inside
// a handler; jobs that can wait belong into a queue of package throttle.
//
//	store := limiter.NewRedis(client, limiter.RedisConfig{})
//	logins, err := limiter.New(store, "logins", limiter.SlidingLog(5, time.Minute))
//	...
//	r, err := logins.Allow(ctx, user)
//	if err == nil && !r.Allowed {
//		// try again after r.RetryAfter
//	}
//
// There are five algorithms, one of them in two forms:
//
//	fixed window     cheapest to explain; up to twice the limit around the edge of a window
//	sliding log      exact in every window; memory for each unit of cost
//	sliding counter  nearly exact, two numbers
//	token bucket     a rate with bursts; tokens stay when the limit is changed
//	leaky bucket     a rate with bursts; one number, the leanest
//	leaky queue      a rate without bursts: what is allowed is told how long to wait
//
// docs/limiters.md of the repository compares them, with plots.
//
// A denial changes nothing. All arithmetic is on whole microseconds, exactly. The
// time of a store on Redis is that of the server; if it steps back nobody waits longer than
// from afresh, and if it jumps ahead nobody gets more than one full burst or window.
package limiter
