package worker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/weirq/weir/throttle"
)

// Dispatcher is the [throttle.Dispatcher] on asynq: a parcel becomes a task in the
// asynq queue named by its pool, and the servers of that pool are woken.
type Dispatcher struct {
	client redis.UniversalClient
	tasks  *asynq.Client
	look   *asynq.Inspector
}

// NewDispatcher returns a dispatcher on client, which stays the caller's to close.
func NewDispatcher(client redis.UniversalClient) *Dispatcher {
	return &Dispatcher{
		client: client,
		tasks:  asynq.NewClientFromRedisClient(client),
		look:   asynq.NewInspectorFromRedisClient(client),
	}
}

// A parcel that is delivered again finds its jobs gone, so asynq may try as often
// as it likes; the jobs' own attempts are not its business. Their time is not
// either: leases tell which jobs are still worked on.
var parcelOptions = []asynq.Option{
	asynq.MaxRetry(math.MaxInt32),
	asynq.Timeout(10 * 365 * 24 * time.Hour),
}

// dispatches is how many parcels are handed over at once: asynq takes one a round
// trip.
const dispatches = 8

// Dispatch hands parcels over and wakes the servers of their pools. A parcel that
// asynq has already is a success.
func (d *Dispatcher) Dispatch(ctx context.Context, parcels []throttle.Parcel) error {
	var group errgroup.Group
	group.SetLimit(dispatches)
	pools := make(map[string]bool)
	for _, p := range parcels {
		pools[p.Pool] = true
		group.Go(func() error { return d.enqueue(ctx, p) })
	}
	err := group.Wait()
	for pool := range pools {
		// A message that is lost costs time, not a parcel: servers look by themselves.
		_ = d.client.Publish(ctx, wakeChannel, pool).Err()
	}
	return err
}

func (d *Dispatcher) enqueue(ctx context.Context, p throttle.Parcel) error {
	payload, err := encodeParcel(p.Jobs)
	if err != nil {
		return err
	}
	options := append([]asynq.Option{asynq.TaskID(taskID(p.ID)), asynq.Queue(p.Pool)}, parcelOptions...)
	_, err = d.tasks.EnqueueContext(ctx, asynq.NewTask(parcelType, payload), options...)
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
		return fmt.Errorf("enqueue parcel %s: %w", p.ID, err)
	}
	return nil
}

// Alive tells whether asynq still has a parcel of the round to deliver, or a server
// that is alive has it in hand. One whose server died would be delivered again only
// after asynq's own lease and its recoverer's round, a minute or two later: too long
// for the jobs in it, which hold up their keys. If a server took it only now and has
// not told yet, its jobs are gone when they ask to depart.
func (d *Dispatcher) Alive(ctx context.Context, round, pool string) (bool, error) {
	for n := range throttle.MostParcels {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		task, err := d.look.GetTaskInfo(pool, taskID(throttle.ParcelID(round, n)))
		switch {
		case errors.Is(err, asynq.ErrQueueNotFound):
			return false, nil
		case errors.Is(err, asynq.ErrTaskNotFound):
			continue
		case err != nil:
			return false, err
		}
		switch task.State {
		case asynq.TaskStateArchived, asynq.TaskStateCompleted:
		case asynq.TaskStateActive:
			if held, err := d.inHand(task.ID); held || err != nil {
				return held, err
			}
		default:
			return true, nil
		}
	}
	return false, nil
}

// inHand tells whether a server that is alive says that it works on a task. Servers
// tell every 5 seconds, and are forgotten after 10.
func (d *Dispatcher) inHand(id string) (bool, error) {
	servers, err := d.look.Servers()
	if err != nil {
		return false, err
	}
	for _, s := range servers {
		for _, w := range s.ActiveWorkers {
			if w.TaskID == id {
				return true, nil
			}
		}
	}
	return false, nil
}
