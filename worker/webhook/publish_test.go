package webhook

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func (b *bench) publisher(t *testing.T) *Publisher {
	t.Helper()
	p, err := NewPublisher(b.endpoints, PublisherConfig{})
	require.NoError(t, err)
	return p
}

func receivers(p Publication) (ids []string) {
	for _, d := range p.Deliveries {
		ids = append(ids, d.EndpointID)
	}
	return ids
}

func TestEventsGoToWhoeverAskedForThem(t *testing.T) {
	b := newBench(t)
	p := b.publisher(t)
	publish := func(eventType string) []string {
		got, err := p.Publish(t.Context(), Event{Type: eventType})
		require.NoError(t, err)
		require.Regexp(t, `^msg_[0-9a-f]{32}$`, got.EventID)
		return receivers(got)
	}
	require.Empty(t, publish("invoice.paid"))
	b.create(t, Endpoint{ID: "all"})
	b.create(t, Endpoint{ID: "exact", Events: []string{"invoice.paid"}})
	b.create(t, Endpoint{ID: "prefix", Events: []string{"invoice.*", "user.*"}})
	b.create(t, Endpoint{ID: "other", Events: []string{"user.*"}})
	require.Equal(t, []string{"all", "exact", "prefix"}, publish("invoice.paid"))
	require.Equal(t, []string{"all", "prefix"}, publish("invoice.sent"))
	require.Equal(t, []string{"all", "other", "prefix"}, publish("user.new"))

	// What another process changes is seen by the next event.
	other := b.others(t)
	_, err := other.Disable(t.Context(), "all", "")
	require.NoError(t, err)
	require.NoError(t, other.Delete(t.Context(), "exact"))
	require.Equal(t, []string{"prefix"}, publish("invoice.paid"))
	_, err = other.Enable(t.Context(), "all")
	require.NoError(t, err)
	require.Equal(t, []string{"all", "prefix"}, publish("invoice.paid"))
}

func TestTheJobOfADelivery(t *testing.T) {
	b := newBench(t)
	b.create(t, Endpoint{ID: "ep_1", Key: "tenant", Headers: map[string]string{"Authorization": "SECRET"}, URL: "https://example.com/SECRET"})
	p, err := NewPublisher(b.endpoints, PublisherConfig{MaxAttempts: 7, Timeout: 20 * time.Second})
	require.NoError(t, err)
	body := []byte("{\"b\":\"é<&>\"}\x00\xff")
	at := time.Date(2026, 5, 1, 2, 3, 4, 5000, time.FixedZone("", 3600))
	ev := Event{ID: "msg_2b7f", Type: "invoice.paid", Data: body, Time: at}
	got, err := p.Publish(t.Context(), ev)
	require.NoError(t, err)
	require.Equal(t, "msg_2b7f", got.EventID)
	require.Len(t, got.Deliveries, 1)
	receipt := got.Deliveries[0]
	require.Equal(t, "msg_2b7f/ep_1", receipt.ID)
	require.Equal(t, "tenant", receipt.Key)
	require.Equal(t, throttle.Waiting, receipt.State)
	require.False(t, receipt.Duplicate)

	info, err := b.queue.Job(t.Context(), "tenant", "msg_2b7f/ep_1")
	require.NoError(t, err)
	require.Equal(t, Type, info.Job.Type)
	require.Equal(t, body, info.Job.Payload)
	require.Equal(t, 7, info.Job.MaxAttempts)
	require.Equal(t, 20*time.Second, info.Job.Timeout)
	require.Equal(t, map[string]string{
		":endpoint": "ep_1", "webhook-id": "msg_2b7f", "content-type": "application/json",
		":event": "invoice.paid", ":time": "2026-05-01T01:03:04.000005Z",
	}, info.Job.Headers, "neither the URL nor a header of the endpoint")

	again, err := p.Publish(t.Context(), ev)
	require.NoError(t, err)
	require.True(t, again.Deliveries[0].Duplicate)
	key, err := b.queue.Key(t.Context(), "tenant")
	require.NoError(t, err)
	require.EqualValues(t, 1, key.Waiting)
}

func TestEventsOutOfBoundsAreRefused(t *testing.T) {
	b := newBench(t)
	b.create(t, Endpoint{})
	p := b.publisher(t)
	for name, c := range map[string]struct {
		event Event
		want  string
	}{
		"no type":    {Event{}, `type "" is not allowed: want letters, digits, - and _ with full stops between`},
		"filter":     {Event{Type: "a.*"}, `type "a.*" is not allowed`},
		"empty part": {Event{Type: "a..b"}, `type "a..b" is not allowed`},
		"long type":  {Event{Type: strings.Repeat("a", 129)}, `type "aaa`},
		"full stop":  {Event{ID: "a.b", Type: "a"}, `id "a.b" is not allowed: want 1 to 64 printable ASCII bytes without spaces, full stops and slashes`},
		"slash":      {Event{ID: "a/b", Type: "a"}, `id "a/b" is not allowed`},
		"long id":    {Event{ID: strings.Repeat("a", 65), Type: "a"}, `id "aaa`},
		"year":       {Event{Type: "a", Time: time.Unix(-1, 0)}, `time "1969-12-31T23:59:59Z" is not allowed`},
		"too much":   {Event{Type: "a", Data: make([]byte, throttle.DefaultMaxJobSize+1)}, "jobs[0].payload 1048577 is not allowed: want at most 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := p.Publish(t.Context(), c.event)
			require.ErrorIs(t, err, throttle.ErrInvalid)
			require.ErrorContains(t, err, c.want)
		})
	}
	// The longest ids together are those of a job.
	b.create(t, Endpoint{ID: strings.Repeat("e", MaxEndpointID)})
	got, err := p.Publish(t.Context(), Event{ID: strings.Repeat("a", MaxEventID), Type: "a"})
	require.NoError(t, err)
	require.Len(t, got.Deliveries, 2)
}

// What keeps an event from one endpoint does not keep it from the others.
func TestTheOthersGetAnEventThatOneCannot(t *testing.T) {
	b := newBench(t)
	for _, id := range []string{"ep_1", "ep_2", "ep_3"} {
		b.create(t, Endpoint{ID: id})
	}
	require.NoError(t, b.queue.Drain(t.Context(), "webhook:ep_2"))
	require.NoError(t, b.client.HSet(t.Context(), recordsKey, "ep_4", `{"url":"SECRET`, versionField, "x").Err())
	got, err := b.publisher(t).Publish(t.Context(), Event{ID: "msg_1", Type: "a"})
	require.ErrorIs(t, err, throttle.ErrDraining)
	require.ErrorContains(t, err, `publish "msg_1": `)
	require.ErrorContains(t, err, `the record of endpoint "ep_4" is damaged`)
	require.NotContains(t, err.Error(), "SECRET")
	require.Equal(t, []string{"ep_1", "ep_2", "ep_3"}, receivers(got))
	require.Equal(t, "msg_1/ep_1", got.Deliveries[0].ID)
	require.Empty(t, got.Deliveries[1].ID)
	require.Equal(t, "msg_1/ep_3", got.Deliveries[2].ID)
}

// A large event to many endpoints is not in memory as often as there are endpoints.
func TestALargeEventGoesOutInBatches(t *testing.T) {
	b := newBench(t)
	const endpoints = 20
	for range endpoints {
		b.create(t, Endpoint{})
	}
	got, err := b.publisher(t).Publish(t.Context(), Event{ID: "msg_1", Type: "a", Data: make([]byte, throttle.DefaultMaxJobSize)})
	require.NoError(t, err)
	require.Len(t, got.Deliveries, endpoints)
	for _, d := range got.Deliveries {
		require.Equal(t, "msg_1/"+d.EndpointID, d.ID)
		require.Equal(t, "webhook:"+d.EndpointID, d.Key)
	}
}

func TestAPublisherIsChecked(t *testing.T) {
	b := newBench(t)
	_, err := NewPublisher(nil, PublisherConfig{})
	require.EqualError(t, err, "endpoints nil is not allowed: want those from NewEndpoints")
	_, err = NewPublisher(b.endpoints, PublisherConfig{TTL: -1})
	require.ErrorContains(t, err, "ttl -1ns is not allowed")
	_, err = NewPublisher(b.endpoints, PublisherConfig{Pool: "a b"})
	require.ErrorContains(t, err, `pool "a b" is not allowed`)
}
