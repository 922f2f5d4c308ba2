package worker_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/embedded"
	"github.com/weirq/weir/worker"
)

// A worker for jobs of one's own type, chosen by it as with any asynq handler. The
// Redis is one inside the process here; with a real one only the URL differs.
func Example() {
	redis, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	defer redis.Close()
	client, err := throttle.Open(redis.URL())
	if err != nil {
		panic(err)
	}
	defer client.Close()
	ctx, stop := context.WithCancel(context.Background())
	queue, err := throttle.NewQueue(ctx, client, throttle.QueueConfig{})
	if err != nil {
		panic(err)
	}

	// The handler: an error is tried again, one that wraps asynq.SkipRetry is not.
	sent := make(chan struct{})
	mux := asynq.NewServeMux()
	mux.HandleFunc("invoice:send", func(ctx context.Context, task *asynq.Task) error {
		job, _ := worker.JobFrom(ctx)
		if string(task.Payload()) == "2" && job.Attempt == 1 {
			return fmt.Errorf("mailbox busy")
		}
		fmt.Printf("invoice %s sent at attempt %d of %d\n", task.Payload(), job.Attempt, job.MaxAttempts)
		sent <- struct{}{}
		return nil
	})

	// The worker and the scheduler, which may be in processes of their own.
	server, err := worker.NewServer(client, queue, worker.Config{
		Retry: worker.RetryPolicy{Base: time.Millisecond, Cap: time.Millisecond, MaxAttempts: 5},
	})
	if err != nil {
		panic(err)
	}
	scheduler, err := throttle.NewScheduler(queue, worker.NewDispatcher(client), throttle.SchedulerConfig{})
	if err != nil {
		panic(err)
	}
	var parts sync.WaitGroup
	parts.Go(func() { err = server.Run(ctx, mux) })
	parts.Go(func() { _ = scheduler.Run(ctx) })

	// A producer, and the limit of its key.
	limit := throttle.Limit{Rate: 20, Period: time.Second, Burst: 1}
	for _, number := range []string{"1", "2", "3"} {
		_, err := queue.Enqueue(ctx, throttle.Job{
			Key: "mail.example.com", ID: "invoice-" + number, Type: "invoice:send", Payload: []byte(number),
			Policy: &throttle.Policy{Limit: limit},
		})
		if err != nil {
			panic(err)
		}
		<-sent
	}
	stop()
	parts.Wait()
	fmt.Println("stopped:", err)
	// Output:
	// invoice 1 sent at attempt 1 of 5
	// invoice 2 sent at attempt 2 of 5
	// invoice 3 sent at attempt 1 of 5
	// stopped: <nil>
}
