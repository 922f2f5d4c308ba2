package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle"
)

// What a change of an endpoint can meet.
var (
	ErrNotFound = errors.New("there is no such endpoint")
	ErrExists   = errors.New("there is an endpoint of this id already")
	ErrBusy     = errors.New("the endpoint is being changed by others: try again")
)

// Endpoints are the records of all endpoints, in one hash in Redis. Each change is atomic,
// and keeps what a later version of this package has stored in a record. It is safe for
// concurrent use, by many processes.
type Endpoints struct {
	store *store
	queue *throttle.Queue
}

// NewEndpoints gives the endpoints behind client, whose jobs are in queue. The client
// stays the caller's to close. The error is a [*throttle.InvalidError].
func NewEndpoints(client redis.UniversalClient, queue *throttle.Queue) (*Endpoints, error) {
	if client == nil {
		return nil, invalid("client", describe("nil"), "a Redis client, see throttle.Open")
	}
	if queue == nil {
		return nil, invalid("queue", describe("nil"), "one from throttle.NewQueue on the same Redis")
	}
	return &Endpoints{store: &store{client: client}, queue: queue}, nil
}

// Create stores a new endpoint and gives it with what was filled in: the id, the key, a
// secret. It begins enabled. One whose id is taken is refused with [ErrExists], one that is out of
// bounds with a [*throttle.InvalidError].
func (s *Endpoints) Create(ctx context.Context, e Endpoint) (Endpoint, error) {
	if e.Disabled || e.DisabledReason != "" {
		return Endpoint{}, invalid("disabled", describe("of a new endpoint"), "none: call Disable once it is created")
	}
	e = e.clone().withDefaults()
	if err := e.Validate(); err != nil {
		return Endpoint{}, err
	}
	now, err := s.now(ctx)
	if err != nil {
		return Endpoint{}, failed("create", e.ID, err)
	}
	e.Created, e.Updated, e.ownPolicy, e.more = now, now, false, nil
	text, err := encodeEndpoint(e)
	if err != nil {
		return Endpoint{}, failed("create", e.ID, err)
	}
	fresh, err := s.store.put(ctx, e.ID, "", text)
	if err == nil && !fresh {
		err = ErrExists
	}
	if err != nil {
		return Endpoint{}, failed("create", e.ID, err)
	}
	return e, nil
}

// Get reads an endpoint. The error is [ErrNotFound] if there is none.
func (s *Endpoints) Get(ctx context.Context, id string) (Endpoint, error) {
	e, _, err := s.get(ctx, id)
	if err != nil {
		return Endpoint{}, failed("get", id, err)
	}
	return e, nil
}

// get also gives the record.
func (s *Endpoints) get(ctx context.Context, id string) (Endpoint, string, error) {
	if !isEndpointID(id) {
		return Endpoint{}, "", ErrNotFound
	}
	text, err := s.store.read(ctx, id)
	if err != nil {
		return Endpoint{}, "", err
	}
	if text == "" {
		return Endpoint{}, "", ErrNotFound
	}
	e, err := decodeEndpoint(id, text)
	return e, text, err
}

// An EndpointPage is part of the list of endpoints.
type EndpointPage struct {
	Endpoints []Endpoint // by id; those with new ids by age
	Next      string     // cursor of the next page; empty at the end
}

// List reads endpoints in the order of their ids. Those that are there all the while are
// listed once, whatever changes between two pages. Records that are damaged are left out and
// named by the error, beside the page.
func (s *Endpoints) List(ctx context.Context, page throttle.Page) (EndpointPage, error) {
	if page.Limit == 0 {
		page.Limit = throttle.DefaultPage
	}
	if page.Limit < 1 || page.Limit > throttle.MaxPage {
		return EndpointPage{}, invalid("limit", page.Limit, "1 to %d, or 0 for %d",
			throttle.MaxPage, throttle.DefaultPage)
	}
	if page.Cursor != "" && !isEndpointID(page.Cursor) {
		return EndpointPage{}, invalid("cursor", clip(page.Cursor), "the Next of the page before, or none for the first")
	}
	all, err := s.store.all(ctx)
	if err != nil {
		return EndpointPage{}, fmt.Errorf("list endpoints: %w", err)
	}
	from, found := slices.BinarySearch(all.ids, page.Cursor)
	if found {
		from++
	}
	ids := all.ids[from:]
	var list EndpointPage
	if len(ids) > page.Limit {
		ids = ids[:page.Limit]
		list.Next = ids[page.Limit-1]
	}
	for _, id := range ids {
		list.Endpoints = append(list.Endpoints, all.endpoints[id].clone())
	}
	return list, all.damaged
}

// Update changes an endpoint: change is called with it as it is stored, and again if others
// change it meanwhile, so it may do no more than that. An error of change is given back and nothing is written.
// ID, Key, Created and what Disable sets stay as they are: another value is refused.
// Jobs that wait are delivered as the endpoint is at their attempt.
func (s *Endpoints) Update(ctx context.Context, id string, change func(*Endpoint) error) (Endpoint, error) {
	e, err := s.update(ctx, id, func(e *Endpoint, _ time.Time) error {
		before := e.clone()
		if err := change(e); err != nil {
			return err
		}
		e.ownPolicy, e.more = before.ownPolicy, before.more
		return stayed(before, *e)
	})
	if err != nil {
		return Endpoint{}, failed("update", id, err)
	}
	return e, nil
}

func stayed(before, after Endpoint) error {
	const allowed = "%q, as it was: it cannot be changed"
	switch {
	case after.ID != before.ID:
		return invalid("id", clip(after.ID), allowed, before.ID)
	case after.Key != before.Key: // jobs wait under it
		return invalid("key", clip(after.Key), allowed, before.Key)
	case !after.Created.Equal(before.Created):
		return invalid("created", after.Created.Format(time.RFC3339Nano), allowed, before.Created.Format(time.RFC3339Nano))
	case after.Disabled != before.Disabled:
		return invalid("disabled", after.Disabled, "%t, as it was: call Disable or Enable", before.Disabled)
	case after.DisabledReason != before.DisabledReason:
		return invalid("disabled_reason", describe("of %d bytes", len(after.DisabledReason)), "the one it had: call Disable or Enable")
	}
	return nil
}

// mostTries bounds how often a change is made again because of others.
const mostTries = 50

// update changes a record as long as it is the one that was read, or reads it again. now is that of Redis.
func (s *Endpoints) update(ctx context.Context, id string, change func(e *Endpoint, now time.Time) error) (Endpoint, error) {
	now, err := s.now(ctx)
	if err != nil {
		return Endpoint{}, err
	}
	for range mostTries {
		e, before, err := s.get(ctx, id)
		if err != nil {
			return Endpoint{}, err
		}
		if err := change(&e, now); err != nil {
			return Endpoint{}, err
		}
		e.Updated = later(now, e.Updated)
		if err := e.Validate(); err != nil {
			return Endpoint{}, err
		}
		after, err := encodeEndpoint(e)
		if err != nil {
			return Endpoint{}, err
		}
		switch done, err := s.store.put(ctx, id, before, after); {
		case err != nil:
			return Endpoint{}, err
		case done:
			return e.clone(), nil
		}
	}
	return Endpoint{}, ErrBusy
}

// later keeps the instants of changes apart, also where the clock was set back.
func later(now, last time.Time) time.Time {
	if now.After(last) {
		return now
	}
	return last.Add(time.Microsecond)
}

// now is the clock of Redis.
func (s *Endpoints) now(ctx context.Context) (time.Time, error) {
	now, err := s.store.client.Time(ctx).Result()
	return now.UTC(), err
}

// failed says at what an error came up. Values that are refused speak for themselves.
func failed(what, id string, err error) error {
	if errors.Is(err, throttle.ErrInvalid) {
		return err
	}
	return fmt.Errorf("%s endpoint %q: %w", what, clip(id), err)
}
