package limiter

import "context"

// A Store keeps what keys have used: [NewRedis] for any number of processes, [NewMemory] for one.
// Both decide alike.
//
// There are no others: the contract is kept by tests of this repository, package limitertest.
type Store interface {
	// check tells whether the store was made as it should be.
	check() error
	open(*Limiter) space
}

// A space is what a store keeps for one limiter.
type space interface {
	ask(context.Context, question) (Result, error)
	askMany(context.Context, []Call) ([]Result, error)
	// hold is ask with a charge that can be cancelled.
	hold(context.Context, question) (Result, hold, error)
	// cancel takes a charge back whose slot has not come.
	cancel(ctx context.Context, key string, cost int64, h hold) error
	reset(ctx context.Context, key string) error
}

// A question is what a limiter is asked.
type question struct {
	key      string
	cost     int64
	patience int64 // longest wait for the slot, µs
	peek     bool  // charges nothing
	reserves bool  // it may be for later
}

// A decision is when a cost may be charged, and whether it was. Instants are µs since 1970.
type decision struct {
	now, slot, cost  int64
	allowed, charged bool
}

func (q question) decide(now, slot int64) decision {
	allowed := slot-now <= q.patience
	return decision{now: now, slot: slot, cost: q.cost, allowed: allowed, charged: allowed && !q.peek}
}

// A hold is what is needed to take a charge back: its slot, 0 if that had come at once, and the state of
// each rule before and after it, as its store has it.
type hold struct {
	slot          int64
	states        []heldState // in memory
	before, after []string    // on Redis
}
