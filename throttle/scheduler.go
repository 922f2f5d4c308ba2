package throttle

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

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
	// DeadLetters bounds what is kept of jobs that were given up.
	DeadLetters Retention
	// OnExpired is told of each job that waited too long, by the scheduler that saw to it,
	// once it is gone: one whose process dies between the two is not told of. nil tells
	// nobody. Calls do not hold up the scheduler, and several may run at once; the end of
	// the scheduler waits for them, HookTimeout at most, after which their context ends. A
	// panic is logged.
	OnExpired func(ctx context.Context, job Job)
	// Logger takes what no caller can be told. nil means that of the queue.
	Logger *slog.Logger
}

func (c SchedulerConfig) withDefaults(q *Queue) SchedulerConfig {
	setDefault(&c.Lead, DefaultLead)
	setDefault(&c.Lease, max(10*time.Second, 10*c.Lead))
	setDefault(&c.Poll, 30*time.Second)
	setDefault(&c.AuditEvery, time.Minute)
	c.DeadLetters = c.DeadLetters.withDefaults()
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
	return c.DeadLetters.validate()
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
	ran      atomic.Bool
	warned   time.Time // the reaper's last word on jobs that wait for a worker

	mu        sync.Mutex
	refused   map[string]int // times in a row that a pool could not be handed over to
	returning sync.WaitGroup // jobs that go back for it

	migrating sync.Map // shards whose keys are being moved
}

// shardState is when to look at a shard, and what is known of a release that was
// not answered.
type shardState struct {
	next     time.Time
	token    string // of that release; empty if all were answered
	round    string // its round
	numbered int    // parcels that its round has in any pool
	failures int    // in a row
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
		refused: make(map[string]int),
	}
	for range q.store.shards {
		s.shards = append(s.shards, &shardState{})
	}
	return s, nil
}

// Run works until ctx ends, and returns nil once it has stopped. An outage of Redis
// does not end it: it goes on when Redis is back. A Scheduler runs once.
func (s *Scheduler) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return errors.New("a throttle.Scheduler runs once: make a new one")
	}
	var parts sync.WaitGroup
	for _, part := range []func(context.Context){s.listen, s.reap, s.audit, s.retain} {
		parts.Go(func() { part(ctx) })
	}
	s.schedule(ctx)
	s.returning.Wait()
	parts.Wait()
	return nil
}

// schedule releases what is due, round after round.
func (s *Scheduler) schedule(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
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
		s.round(ctx)
		timer.Reset(time.Until(s.earliest()))
	}
}

// What a stalled Redis can add to a round, and so to a shutdown.
const (
	releaseTimeout  = 2 * time.Second
	handOverTimeout = 3 * time.Second
)

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

// round looks at the shards that are due and hands over what they release. One that
// was begun is ended whatever becomes of ctx: what it released must reach a worker.
func (s *Scheduler) round(ctx context.Context) {
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
		return
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
			Most: most, Round: state.round, Scheduler: s.name, Token: state.token, Payloads: s.expiredPayloads(),
		}))
	}
	whole := context.WithoutCancel(ctx)
	s.release(whole, calls)
	parcels := newParcels()
	for _, call := range calls {
		state := s.shards[call.Shard]
		if call.Err != nil {
			continue
		}
		r := call.Released()
		parcels.add(call.Shard, state.round, state.numbered, r.Jobs)
		wait := s.config.Poll
		if r.Due >= 0 {
			wait = min(wait, microseconds(r.Due))
		}
		*state = shardState{next: time.Now().Add(wait)}
		s.leases.set(call.Shard, r.Lease)
		s.expired(ctx, r.Expired)
		if r.Moving > 0 {
			s.migrate(ctx, call.Shard)
		}
	}
	for _, call := range calls {
		if call.Err != nil {
			s.fail(call, parcels.numbered(s.shards[call.Shard].round))
		}
	}
	pools := make(map[string][]Parcel)
	for _, p := range parcels.filled {
		pools[p.Pool] = append(pools[p.Pool], p)
	}
	var sending sync.WaitGroup
	for pool, parcels := range pools {
		sending.Go(func() { s.handOver(ctx, pool, parcels) })
	}
	sending.Wait()
}

// handOver gives the parcels of a pool to the dispatcher. What it does not take goes
// back into its buckets after a while, at most as long as its leases; other pools do
// not wait for it.
func (s *Scheduler) handOver(ctx context.Context, pool string, parcels []Parcel) {
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverTimeout)
	defer cancel()
	err := s.dispatch.Dispatch(whole, parcels)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.refused, pool)
		return
	}
	s.refused[pool]++
	failures := s.refused[pool]
	s.config.Logger.Warn("handing over failed", "pool", pool, "parcels", len(parcels), "error", err, "failures", failures)
	s.returning.Go(func() {
		sleep(ctx, backoff(failures))
		s.giveBack(ctx, parcels)
	})
}

func (s *Scheduler) release(ctx context.Context, calls []*script.Call) {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	_ = s.store.run(ctx, calls...) // each call has its own error
}

// fail has a shard whose release was not answered ask again after a while, for the
// same answer, whose parcels are numbered behind those that its round had already.
// The other shards go on.
func (s *Scheduler) fail(call *script.Call, numbered int) {
	state := s.shards[call.Shard]
	state.failures++
	state.numbered = max(state.numbered, numbered)
	state.next = time.Now().Add(backoff(state.failures))
	s.config.Logger.Warn("release failed", "shard", call.Shard, "error", call.Err, "failures", state.failures)
}

// giveBack returns the jobs of parcels that could not be handed over. Those of a
// parcel that arrived after all are gone when they ask to depart.
func (s *Scheduler) giveBack(ctx context.Context, parcels []Parcel) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverTimeout)
	defer cancel()
	byShard := make(map[int][]Ending)
	for _, p := range parcels {
		for _, h := range p.Jobs {
			byShard[h.Shard] = append(byShard[h.Shard], Ending{Hold: h, What: Return})
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

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
