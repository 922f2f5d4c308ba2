package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirq/weir/throttle"
)

// PublisherConfig is what all jobs of a [Publisher] have. The zero value is ready for use;
// what is left out has its meaning of [throttle.Job].
type PublisherConfig struct {
	Timeout     time.Duration // of one attempt
	MaxAttempts int
	TTL         time.Duration // how long a job may wait for its first attempt
	Pool        string
}

// A Publisher has events delivered. It is safe for concurrent use. It keeps a copy of
// the endpoints, and asks at each event whether one has changed.
type Publisher struct {
	endpoints *Endpoints
	config    PublisherConfig
}

// NewPublisher makes a publisher to the endpoints. The error is a [*throttle.InvalidError].
func NewPublisher(endpoints *Endpoints, config PublisherConfig) (*Publisher, error) {
	if endpoints == nil {
		return nil, invalid("endpoints", describe("nil"), "those from NewEndpoints")
	}
	p := &Publisher{endpoints, config}
	// A job of these settings, for what they are checked by.
	if err := p.job(Endpoint{ID: "any", Key: "any"}, Event{ID: "any", Type: "any"}).Validate(0); err != nil {
		return nil, err
	}
	return p, nil
}

// A Publication is what became of an event.
type Publication struct {
	EventID    string
	Deliveries []Delivery // one for each endpoint that it is for, by their ids
}

// A Delivery is the job that takes an event to one endpoint. Its receipt has an empty ID if the
// job was not stored, or may not have been.
type Delivery struct {
	EndpointID string
	throttle.Receipt
}

// Publish enqueues one job for each enabled endpoint whose filters let the event
// through, under the endpoint's key. The id of a job is the event's, a slash and the endpoint's: so to
// publish an event of the same ID again is safe, and adds nothing as long as its jobs have not ended. Give an
// ID for that; if an error comes with a Publication, its EventID will do.
//
// An event that is out of bounds is refused with a [*throttle.InvalidError]. If not all jobs could be
// stored, the error is that of [throttle.Queue.EnqueueMany]. A record of an endpoint that
// is damaged is named by the error too, and the others get the event.
func (p *Publisher) Publish(ctx context.Context, ev Event) (Publication, error) {
	ev = ev.withDefaults()
	if err := ev.Validate(); err != nil {
		return Publication{}, err
	}
	published := Publication{EventID: ev.ID}
	all, err := p.endpoints.store.all(ctx)
	if err != nil {
		return published, fmt.Errorf("publish %q: %w", ev.ID, err)
	}
	var jobs []throttle.Job
	for _, id := range all.ids {
		if e := all.endpoints[id]; !e.Disabled && e.wants(ev.Type) {
			jobs = append(jobs, p.job(e, ev))
			published.Deliveries = append(published.Deliveries, Delivery{EndpointID: id})
		}
	}
	if err := errors.Join(p.enqueue(ctx, jobs, published.Deliveries), all.damaged); err != nil {
		return published, fmt.Errorf("publish %q: %w", ev.ID, err)
	}
	return published, nil
}

// Each of the jobs that are enqueued together is a copy of the event.
const (
	batchBytes = 8 << 20
	batchJobs  = 1000
)

func (p *Publisher) enqueue(ctx context.Context, jobs []throttle.Job, deliveries []Delivery) error {
	if len(jobs) == 0 {
		return nil
	}
	size := min(batchJobs, max(1, batchBytes/max(1, len(jobs[0].Payload))))
	var errs []error
	for from := 0; from < len(jobs); from += size {
		receipts, err := p.endpoints.queue.EnqueueMany(ctx, jobs[from:min(from+size, len(jobs))])
		for i, r := range receipts {
			deliveries[from+i].Receipt = r
		}
		switch {
		case errors.Is(err, throttle.ErrInvalid): // so are all: they differ in the endpoint only
			return err
		case err != nil:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (p *Publisher) job(e Endpoint, ev Event) throttle.Job {
	j := e.job(ev)
	j.Timeout, j.MaxAttempts, j.TTL, j.Pool = p.config.Timeout, p.config.MaxAttempts, p.config.TTL, p.config.Pool
	return j
}
