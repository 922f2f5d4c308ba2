package throttle

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirq/weir/throttle/internal/script"
)

// Permits is the worker's side of the buckets: it claims slots for jobs that were
// released, renews the leases of those at hand, and ends their runs. It is safe
// for concurrent use.
type Permits struct {
	store  *store
	lead   time.Duration
	name   string
	tokens atomic.Int64
	clocks []serverClock // by shard
}

// NewPermits returns the worker's side of q. lead must be that of the schedulers,
// [SchedulerConfig].Lead; 0 means DefaultLead.
func NewPermits(q *Queue, lead time.Duration) (*Permits, error) {
	if lead == 0 {
		lead = DefaultLead
	}
	if err := validateLead(lead); err != nil {
		return nil, err
	}
	return &Permits{store: q.store, lead: lead, name: newName(), clocks: make([]serverClock, q.store.shards)}, nil
}

// A Hold names a job in a worker's hands. Release and Run fence off whoever held
// it before.
type Hold struct {
	Key, ID string
	Release int64
	Run     int64 // 0 until it departs
	Shard   int   // part of the state that it lies in: moves of one shard can share a call
}

// Shards is how many parts the state has.
func (p *Permits) Shards() int { return p.store.shards }

// Lead is how long before its slot a job is released.
func (p *Permits) Lead() time.Duration { return p.lead }

// Status of a [Permit].
type Status int

// What becomes of a job that asked to depart.
const (
	Gone   Status = iota // finished, taken back or held by another: run nothing
	Go                   // leave at Permit.At
	Parked               // back in its bucket: it would have to wait long
)

// A Permit is the answer to one job that asked to depart.
type Permit struct {
	Status  Status
	At      time.Time // its slot, on this process' clock
	Run     int64     // for the Hold from now on
	Attempt int       // counted from 1
	Limit   Limit     // of the key
	// Parent is the parent with the shortest interval, and ParentLimit its limit, for
	// its children leave together at that pace. Empty without parents.
	Parent      string
	ParentLimit Limit
	Job         Job   // set when the job departs for the first time since its release
	Damaged     error // the stored job could not be read: end its run as Dead
	// Forced is true when an operator has it leave past the limit: see Queue.ReleaseNow.
	Forced   bool
	Deadline time.Time // when its run must be over, on this process' clock; zero for none
}

// NewToken names one Depart call, so that it can be repeated when its answer was
// lost.
func (p *Permits) NewToken() string {
	return p.name + "." + strconv.FormatInt(p.tokens.Add(1), 36)
}

// Depart charges the buckets of holds, which must be of one shard, and gives each
// job its slot. lease is how long after its slot a job is taken back unless it is
// extended or finished. A repeated call with the same token gets the same answer.
func (p *Permits) Depart(ctx context.Context, lease time.Duration, token string, holds []Hold) ([]Permit, error) {
	if len(holds) == 0 {
		return nil, nil
	}
	shard := holds[0].Shard
	call := p.store.scripts.Depart(shard, p.lead.Microseconds(), lease.Microseconds(), token, scriptHolds(holds))
	sent := time.Now()
	if err := p.store.run(ctx, call); err != nil {
		return nil, fmt.Errorf("depart %d jobs: %w", len(holds), err)
	}
	now, slots := call.Slots()
	if len(slots) != len(holds) {
		return nil, fmt.Errorf("depart %d jobs: got %d answers", len(holds), len(slots))
	}
	clock := &p.clocks[shard]
	clock.learn(now, sent, time.Now())
	permits := make([]Permit, len(slots))
	for i, s := range slots {
		permits[i] = Permit{
			Status: Status(s.Status), Run: s.Run, Attempt: int(s.Attempt), At: clock.local(s.At),
			Limit:  Limit{Rate: s.Rate, Period: microseconds(s.Period), Burst: s.Burst},
			Parent: s.Parent.Key, ParentLimit: Limit{Rate: s.Parent.Rate, Period: microseconds(s.Parent.Period), Burst: s.Parent.Burst},
		}
		permits[i].Forced = s.Forced
		if s.Deadline > 0 {
			permits[i].Deadline = clock.local(s.Deadline)
		}
		if permits[i].Status == Go && holds[i].Run == 0 {
			permits[i].Job, permits[i].Damaged = decodeJob(holds[i].Key, holds[i].ID, s.Job)
		}
	}
	return permits, nil
}

// How a run ends.
const (
	Done   = script.Done   // for good
	Retry  = script.Retry  // another attempt after a delay, through the bucket
	Dead   = script.Dead   // given up: kept as a dead letter
	Return = script.Return // back to its place in the line, no attempt counted
	// Refused is Return of a job whose call the other side did not take, for a limit of its own.
	// After a day of it, or where the policy does not listen, it is a Retry.
	Refused = script.Refused
	// RefusedLast is Refused of the last attempt that a job has: where it would be a Retry it is Dead.
	RefusedLast = script.RefusedLast
)

// An Ending ends the run of a job.
type Ending struct {
	Hold
	What   string        // Done, Retry, Dead or Return
	Delay  time.Duration // of a Retry
	Reason string        // why a Retry or a Dead one failed, for people; at most MaxReasonBytes of it are kept
	// Cost is what the run truly cost, if Settled: the bucket is corrected by the
	// difference to what the job was charged. 0 to MaxCost.
	Cost    int64
	Settled bool
	// Fared is how the call went, as far as it says something of the key; Rest is how
	// long the other side wants no calls of it, at most MaxRest. See [Policy].Listen.
	Fared Fared
	Rest  time.Duration
}

// MaxReasonBytes bounds what is kept of the error of an attempt.
const MaxReasonBytes = 1024

func shorten(reason string) string {
	return strings.ToValidUTF8(reason[:min(len(reason), MaxReasonBytes)], "")
}

// Finish ends runs of jobs, which must be of one shard. It tells for each whether
// it was held as named; one that was not is no longer the caller's business, or
// was finished by an earlier call whose answer was lost.
func (p *Permits) Finish(ctx context.Context, endings []Ending) ([]bool, error) {
	if len(endings) == 0 {
		return nil, nil
	}
	ends := make([]script.End, len(endings))
	for i, e := range endings {
		switch e.Fared {
		case "", Succeeded, Failed, OverLimit:
		default:
			return nil, invalid("fared", string(e.Fared), "%s, %s, %s or nothing", Succeeded, Failed, OverLimit)
		}
		ends[i] = script.End{
			Hold: e.numbers(), What: e.What, Delay: max(0, e.Delay.Microseconds()), Reason: shorten(e.Reason),
			Cost: min(max(0, e.Cost), MaxCost), Settled: e.Settled,
			Fared: string(e.Fared), Rest: (min(max(0, e.Rest), MaxRest) + time.Microsecond - 1).Microseconds(),
		}
	}
	call := p.store.scripts.Finish(endings[0].Shard, p.lead.Microseconds(), ends)
	if err := p.store.run(ctx, call); err != nil {
		return nil, fmt.Errorf("finish %d jobs: %w", len(endings), err)
	}
	return call.Held(), nil
}

// Extend renews the leases of jobs, which must be of one shard, to end lease from
// now. It tells for each whether it is still held as named.
func (p *Permits) Extend(ctx context.Context, lease time.Duration, holds []Hold) ([]bool, error) {
	if len(holds) == 0 {
		return nil, nil
	}
	call := p.store.scripts.Extend(holds[0].Shard, lease.Microseconds(), scriptHolds(holds))
	if err := p.store.run(ctx, call); err != nil {
		return nil, fmt.Errorf("extend %d jobs: %w", len(holds), err)
	}
	return call.Held(), nil
}

func (h Hold) numbers() script.Hold {
	return script.Hold{Key: h.Key, ID: h.ID, Release: h.Release, Run: h.Run}
}

func scriptHolds(holds []Hold) []script.Hold {
	out := make([]script.Hold, len(holds))
	for i, h := range holds {
		out[i] = h.numbers()
	}
	return out
}

// serverClock maps a shard's time to this process' clock. A round trip tells the
// server's time to within half its length, so the shortest recent one is trusted:
// a stall of this process between the call and its answer does not move slots.
type serverClock struct {
	mu     sync.Mutex
	server int64     // µs
	here   time.Time // the same instant
	trip   time.Duration
}

// Two clocks may drift apart by this much of the time since they were compared.
const maxDrift = 500e-6

func (c *serverClock) learn(server int64, sent, received time.Time) {
	trip := received.Sub(sent)
	middle := sent.Add(trip / 2)
	c.mu.Lock()
	defer c.mu.Unlock()
	age := middle.Sub(c.here)
	known := c.trip + time.Duration(float64(age)*maxDrift)
	off := age - microseconds(server-c.server)
	if c.here.IsZero() || trip <= known || off.Abs() > (trip+known)/2 {
		c.server, c.here, c.trip = server, middle, trip
	}
}

func (c *serverClock) local(server int64) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.here.Add(microseconds(server - c.server))
}
