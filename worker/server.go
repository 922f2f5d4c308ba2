package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle"
)

// A Server takes parcels, lets their jobs leave at their slots and runs them. Any
// number may serve one Redis.
type Server struct {
	client  redis.UniversalClient
	permits *throttle.Permits
	config  Config
	metrics *metrics

	handler    asynq.Handler
	base       context.Context // of every job: ends when a shutdown takes too long
	places     *places
	departures *departures
	endings    []*batcher[ending] // by shard
	hands      *hands
	arrivals   atomic.Int64
	push       *pushClient
	drained    chan struct{} // closed when a shutdown waits for no job any more
}

// NewServer returns a server for the jobs of q, on the same Redis client; the
// client stays the caller's to close.
func NewServer(client redis.UniversalClient, q *throttle.Queue, config Config) (*Server, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	permits, err := throttle.NewPermits(q, config.Lead)
	if err != nil {
		return nil, err
	}
	s := &Server{client: client, permits: permits, config: config, hands: newHands(permits.Shards()), drained: make(chan struct{})}
	if s.metrics, err = newMetrics(config.Registerer); err != nil {
		return nil, err
	}
	return s, nil
}

// Run serves until ctx ends, then drains: it takes no more parcels, gives back the
// jobs that have not departed, and waits for running ones up to ShutdownTimeout.
// The rest see their contexts end and go back as well. A Server runs once.
func (s *Server) Run(ctx context.Context, handler asynq.Handler) error {
	if s.handler != nil {
		return errors.New("a worker.Server runs once: make a new one")
	}
	if handler == nil {
		return errors.New("handler nil is not allowed: want an asynq.Handler")
	}
	s.handler = handler
	base, abort := context.WithCancelCause(context.Background())
	defer abort(nil)
	s.base = base
	s.departures = newDepartures(s)
	s.places = newPlaces(s.config.Concurrency, s.departures.ask)
	s.endings = s.newEndings()

	// What talks to Redis for the jobs at hand outlives ctx.
	background, done := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	for shard := range s.permits.Shards() {
		parts.Go(func() { s.departures.shards[shard].run(background) })
		parts.Go(func() { s.endings[shard].run(background) })
	}
	parts.Go(func() { s.renew(background) })
	parts.Go(func() { s.unload(background) })
	parts.Go(func() { s.permits.Cooled(background, s.departures.cool) })
	defer parts.Wait()
	defer done()

	s.push = newPushClient(s.client, len(s.config.Pools), ctx.Done())
	s.push.places = s.places
	listening, deaf := context.WithCancel(background)
	defer deaf()
	parts.Go(func() { s.push.listen(listening) })
	server := asynq.NewServerFromRedisClient(s.push, asynq.Config{
		// A parcel is at hand until its last job has ended, so there are more
		// parcels at hand than jobs running, but not many more.
		Concurrency:       s.config.Concurrency + 32,
		Queues:            s.config.Pools,
		TaskCheckInterval: time.Millisecond, // the wait is push's
		ShutdownTimeout:   s.config.ShutdownTimeout + 5*time.Second,
		Logger:            asynqLogger{s.config.Logger},
		LogLevel:          asynq.WarnLevel,
		// A parcel comes back only when it could not be taken in.
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Second },
	})
	if err := server.Start(asynq.HandlerFunc(s.receive)); err != nil {
		return fmt.Errorf("start asynq: %w", err)
	}
	<-ctx.Done()
	go server.Stop() // returns only after the dequeue under way
	s.drain(abort)
	close(s.drained)
	server.Shutdown()
	return nil
}

// receive takes in a parcel and returns once all its jobs have ended.
func (s *Server) receive(ctx context.Context, task *asynq.Task) error {
	parcel, err := s.takeIn(task)
	s.push.took()
	if err != nil {
		return err
	}
	select {
	case <-parcel.done:
		return nil
	case <-ctx.Done(): // asynq lost its lease; ours go on
		return ctx.Err()
	case <-s.drained: // what has not ended by now is left to leases
		return errShutdown
	}
}

// takeIn puts the jobs of a parcel in line.
func (s *Server) takeIn(task *asynq.Task) (*load, error) {
	jobs, err := decodeParcel(task.Payload(), s.permits.Shards())
	if err != nil || task.Type() != parcelType {
		// Its jobs come back when their leases end.
		s.config.Logger.Error("unreadable parcel", "type", task.Type(), "error", err)
		return nil, fmt.Errorf("unreadable parcel: %w", asynq.SkipRetry)
	}
	parcel := newLoad(len(jobs))
	in := make([]*held, 0, len(jobs))
	for _, hold := range jobs {
		h := &held{parcel: parcel, order: s.arrivals.Add(1), arrived: time.Now(), hold: hold}
		if s.hands.take(h) {
			in = append(in, h)
		} else {
			parcel.end()
		}
	}
	for _, h := range s.places.add(in) {
		s.giveBack(h)
	}
	return parcel, nil
}

// unload gives back jobs that find no place for some leads, until ctx ends: a worker
// whose calls hang must not keep them from the others.
func (s *Server) unload(ctx context.Context) {
	ticker := time.NewTicker(s.config.Lead)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			for _, h := range s.places.stale(now.Add(-5 * s.config.Lead)) {
				s.giveBack(h)
			}
		}
	}
}

// drain ends what is at hand: first what has not departed, then what is running,
// then, when time is up, whatever is left.
func (s *Server) drain(abort context.CancelCauseFunc) {
	for _, h := range s.places.close() {
		s.giveBack(h)
	}
	ended := make(chan struct{})
	go func() {
		s.hands.wait()
		close(ended)
	}()
	timer := time.NewTimer(s.config.ShutdownTimeout)
	defer timer.Stop()
	select {
	case <-ended:
		s.departures.close()
		return
	case <-timer.C:
	}
	s.departures.close()
	abort(errShutdown)
	// Handlers that heed their context end now; those that do not are left behind.
	grace := time.NewTimer(min(s.config.ShutdownTimeout/10+50*time.Millisecond, time.Second/2))
	defer grace.Stop()
	select {
	case <-ended:
		return
	case <-grace.C:
	}
	for _, h := range s.hands.all() {
		s.settle(h, verdict{outcome: Parked})
	}
	select {
	case <-ended:
	case <-time.After(time.Second): // Redis is away: leases do the rest
		s.hands.abandon()
	}
}
