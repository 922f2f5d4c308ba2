package throttle

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle/internal/script"
)

// DefaultLead covers the trip of a parcel to a worker with room for a stalled
// process: on a busy two-core machine a parcel took 2 to 5 ms, rarely 50.
const DefaultLead = 100 * time.Millisecond

const (
	minLead = 10 * time.Millisecond
	maxLead = 10 * time.Second
)

func validateLead(lead time.Duration) error {
	if lead < minLead || lead > maxLead {
		return invalid("lead", lead, "%v to %v", minLead, maxLead)
	}
	return nil
}

// SchedulerConfig sets up a [Scheduler]. The zero value is ready to use.
type SchedulerConfig struct {
	// Lead is how long before its slot a job is released. All processes must use
	// the same. 0 means DefaultLead; 10ms to 10s.
	Lead time.Duration
	// Lease is how long a released job may take to reach a worker before it is
	// looked for. 0 means 10s; at least ten leads.
	Lease time.Duration
	// Poll is how often a shard is looked at when nothing was heard of it: the
	// longest delay that a lost wake-up message can cause. 0 means 30s.
	Poll time.Duration
	// AuditEvery is how often all buckets are checked for damage, at a bounded
	// pace: many keys take longer. 0 means 1m.
	AuditEvery time.Duration
	// Logger takes what no caller can be told. nil means that of the queue.
	Logger *slog.Logger
}

func (c SchedulerConfig) withDefaults(q *Queue) SchedulerConfig {
	setDefault(&c.Lead, DefaultLead)
	setDefault(&c.Lease, max(10*time.Second, 10*c.Lead))
	setDefault(&c.Poll, 30*time.Second)
	setDefault(&c.AuditEvery, time.Minute)
	if c.Logger == nil {
		c.Logger = q.logger
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c SchedulerConfig) validate() error {
	if err := validateLead(c.Lead); err != nil {
		return err
	}
	if c.Lease < 10*c.Lead {
		return invalid("lease", c.Lease, "at least ten times the lead of %v", c.Lead)
	}
	for field, d := range map[string]time.Duration{
		"poll": c.Poll, "audit_every": c.AuditEvery,
	} {
		if d < 10*time.Millisecond {
			return invalid(field, d, "at least 10ms")
		}
	}
	return nil
}

// A Scheduler releases jobs shortly before their slots and hands them to a
// Dispatcher. It also takes back jobs whose worker is lost. Any number may run on
// one Redis: a job is released once.
type Scheduler struct {
	config   SchedulerConfig
	store    *store
	permits  *Permits
	dispatch Dispatcher
	name     string
	rounds   int64
	shards   []*shardState
	wake     chan int // shard to look at, everyShard for all
	leases   *alarms  // when leases of each shard may end
}

// shardState is when to look at a shard, and the call that has yet to be answered.
type shardState struct {
	next  time.Time
	token string // of a release whose answer was lost, to get it again
	round string // its round
}

const everyShard = -1

// NewScheduler returns a scheduler for the buckets of q.
func NewScheduler(q *Queue, d Dispatcher, config SchedulerConfig) (*Scheduler, error) {
	if d == nil {
		return nil, invalid("dispatcher", "nil", "a Dispatcher")
	}
	config = config.withDefaults(q)
	if err := config.validate(); err != nil {
		return nil, err
	}
	permits, err := NewPermits(q, config.Lead)
	if err != nil {
		return nil, err
	}
	s := &Scheduler{
		config: config, store: q.store, permits: permits, dispatch: d, name: newName(),
		wake: make(chan int, 4*q.store.shards), leases: newAlarms(q.store.shards),
	}
	for range q.store.shards {
		s.shards = append(s.shards, &shardState{})
	}
	return s, nil
}

// Run works until ctx ends, and returns once it has stopped. An outage of Redis
// does not end it: it goes on when Redis is back. The error is always nil or that
// of a ctx that ended by something else than being cancelled.
func (s *Scheduler) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	for _, part := range []func(context.Context){s.listen, s.reap, s.audit} {
		parts.Go(func() { part(ctx) })
	}
	s.schedule(ctx)
	parts.Wait()
	return nil
}

// schedule releases what is due, round after round.
func (s *Scheduler) schedule(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return
		case shard := <-s.wake:
			s.hear(shard)
		case <-timer.C:
		}
		for drained := false; !drained; {
			select {
			case shard := <-s.wake:
				s.hear(shard)
			default:
				drained = true
			}
		}
		// A round that was begun is ended: what it released must reach a worker.
		whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), roundTimeout)
		err := s.round(whole)
		cancel()
		if err != nil && ctx.Err() == nil {
			failures++
			s.config.Logger.Warn("release failed", "error", err, "failures", failures)
			timer.Reset(backoff(failures))
			continue
		}
		failures = 0
		timer.Reset(time.Until(s.earliest()))
	}
}

// roundTimeout bounds what a stalled Redis can add to a shutdown.
const roundTimeout = 5 * time.Second

// backoff spaces the calls of a loop that fails n times in a row.
func backoff(n int) time.Duration {
	return min(5*time.Second, 10*time.Millisecond<<min(n, 10))
}

func (s *Scheduler) hear(shard int) {
	now := time.Now()
	for i, state := range s.shards {
		if shard == i || shard == everyShard {
			state.next = now
		}
	}
}

func (s *Scheduler) earliest() time.Time {
	first := s.shards[0].next
	for _, state := range s.shards[1:] {
		if state.next.Before(first) {
			first = state.next
		}
	}
	return first
}

// round looks at the shards that are due and hands over what they release.
func (s *Scheduler) round(ctx context.Context) error {
	now := time.Now()
	s.rounds++
	round := s.name + "-" + strconv.FormatInt(s.rounds, 36)
	var due []int
	for i, state := range s.shards {
		if !state.next.After(now) {
			due = append(due, i)
		}
	}
	if len(due) == 0 {
		return nil
	}
	most := min(mostPerShard, mostPerRound/len(due))
	calls := make([]*script.Call, 0, len(due))
	for _, i := range due {
		state := s.shards[i]
		if state.token == "" {
			state.token, state.round = s.permits.NewToken(), round
		}
		calls = append(calls, s.store.scripts.Release(i, script.Releasing{
			Lead: s.config.Lead.Microseconds(), Lease: s.config.Lease.Microseconds(),
			Most: most, Round: state.round, Scheduler: s.name, Token: state.token,
		}))
	}
	err := s.store.run(ctx, calls...)
	parcels := newParcels()
	for _, call := range calls {
		if call.Err != nil {
			continue
		}
		state := s.shards[call.Shard]
		due, lease, jobs := call.Released()
		parcels.add(state.round, jobs)
		state.token = ""
		wait := s.config.Poll
		if due >= 0 {
			wait = min(wait, microseconds(due))
		}
		state.next = time.Now().Add(wait)
		s.leases.set(call.Shard, lease)
	}
	if sent := parcels.filled; len(sent) > 0 {
		if handErr := s.dispatch.Dispatch(ctx, sent); handErr != nil {
			s.giveBack(ctx, sent)
			return fmt.Errorf("hand over %d parcels: %w", len(sent), handErr)
		}
	}
	return err
}

// giveBack returns the jobs of parcels that could not be handed over. Those of a
// parcel that arrived after all are gone when they ask to depart.
func (s *Scheduler) giveBack(ctx context.Context, parcels []Parcel) {
	byShard := make(map[int][]Ending)
	for _, p := range parcels {
		for _, h := range p.Jobs {
			shard := s.store.shard(h.Key)
			byShard[shard] = append(byShard[shard], Ending{Hold: h, What: Return})
		}
	}
	for _, endings := range byShard {
		if _, err := s.permits.Finish(ctx, endings); err != nil {
			// The reaper finds them when their leases end.
			s.config.Logger.Warn("jobs that could not be handed over stay released until their leases end",
				"jobs", len(endings), "error", err)
		}
	}
}

// listen passes on the wake-up messages of enqueue, depart and finish. After a
// lost connection every shard is looked at, since messages may have been missed.
func (s *Scheduler) listen(ctx context.Context) {
	sub := s.store.client.Subscribe(ctx, script.WakeChannel)
	// Receive does not heed its context while it reads.
	defer context.AfterFunc(ctx, func() { _ = sub.Close() })()
	byName := make(map[string]int, len(s.shards))
	for i := range s.shards {
		byName[script.ShardName(i)] = i
	}
	for failures := 0; ; {
		msg, err := sub.Receive(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			failures++
			sleep(ctx, backoff(failures))
			continue
		}
		failures = 0
		shard := everyShard
		if m, ok := msg.(*redis.Message); ok {
			if n, known := byName[m.Payload]; known {
				shard = n
			}
		}
		select {
		case s.wake <- shard:
		case <-ctx.Done():
			return
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
