package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// bench is a Redis with a queue and endpoints.
type bench struct {
	client    redis.UniversalClient
	queue     *throttle.Queue
	endpoints *Endpoints
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{client: throttletest.StartRedis(t).Client()}
	var err error
	b.queue, err = throttle.NewQueue(t.Context(), b.client, throttle.QueueConfig{})
	require.NoError(t, err)
	b.endpoints = b.others(t)
	return b
}

// others are the endpoints as another process has them.
func (b *bench) others(t *testing.T) *Endpoints {
	t.Helper()
	s, err := NewEndpoints(b.client, b.queue)
	require.NoError(t, err)
	return s
}

func (b *bench) create(t *testing.T, e Endpoint) Endpoint {
	t.Helper()
	if e.URL == "" {
		e.URL = "https://example.com/hook"
	}
	e, err := b.endpoints.Create(t.Context(), e)
	require.NoError(t, err)
	return e
}

func (b *bench) get(t *testing.T, id string) Endpoint {
	t.Helper()
	e, err := b.endpoints.Get(t.Context(), id)
	require.NoError(t, err)
	return e
}

// record is what is stored of an endpoint.
func (b *bench) record(t *testing.T, id string) string {
	t.Helper()
	text, err := b.client.HGet(t.Context(), recordsKey, id).Result()
	require.NoError(t, err)
	return text
}

func TestEndpointsAreKept(t *testing.T) {
	b := newBench(t)
	full := b.create(t, Endpoint{
		ID: "full", URL: "https://u:p@example.com/hook?token=1", Key: "tenant {1}", Events: []string{"invoice.*"},
		Headers: map[string]string{"X-A": "é; <&>"},
		Secrets: []EndpointSecret{{Secret: NewPrivateKey()}, {Secret: NewSecret(), Until: time.Unix(2e9, 0).UTC()}},
	})
	require.Equal(t, full, b.get(t, "full"))
	require.WithinDuration(t, time.Now(), full.Created, time.Minute)
	require.Equal(t, full.Created, full.Updated)

	little := b.create(t, Endpoint{})
	require.Regexp(t, `^ep_[0-9a-f]{32}$`, little.ID)
	require.Equal(t, "webhook:"+little.ID, little.Key)
	require.Len(t, little.Secrets, 1)
	require.True(t, little.Secrets[0].Secret.CanSign())
	require.Equal(t, little, b.get(t, little.ID))

	_, err := b.endpoints.Create(t.Context(), Endpoint{ID: "full", URL: "https://example.org"})
	require.ErrorIs(t, err, ErrExists)
	require.EqualError(t, err, `create endpoint "full": there is an endpoint of this id already`)
	_, err = b.endpoints.Create(t.Context(), Endpoint{URL: "https://example.org", Disabled: true})
	require.ErrorIs(t, err, throttle.ErrInvalid)
	_, err = b.endpoints.Create(t.Context(), Endpoint{URL: "example.org/SECRET"})
	require.ErrorIs(t, err, throttle.ErrInvalid)
	require.NotContains(t, err.Error(), "SECRET")
	require.Equal(t, full, b.get(t, "full"), "nothing is overwritten")

	for _, id := range []string{"none", "", versionField, "a b"} {
		_, err = b.endpoints.Get(t.Context(), id)
		require.ErrorIs(t, err, ErrNotFound, id)
		require.ErrorIs(t, b.endpoints.Delete(t.Context(), id), ErrNotFound, id)
		_, err = b.endpoints.Update(t.Context(), id, func(*Endpoint) error { return nil })
		require.ErrorIs(t, err, ErrNotFound, id)
	}
	require.NoError(t, b.endpoints.Delete(t.Context(), "full"))
	_, err = b.endpoints.Get(t.Context(), "full")
	require.ErrorIs(t, err, ErrNotFound)

	names, err := b.client.Keys(t.Context(), "*endpoint*").Result()
	require.NoError(t, err)
	require.Equal(t, []string{recordsKey}, names)
}

func TestEndpointsNeedAClientAndAQueue(t *testing.T) {
	_, err := NewEndpoints(nil, nil)
	require.EqualError(t, err, "client nil is not allowed: want a Redis client, see throttle.Open")
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	_, err = NewEndpoints(client, nil)
	require.EqualError(t, err, "queue nil is not allowed: want one from throttle.NewQueue on the same Redis")
}

func TestEndpointsAreListedInPages(t *testing.T) {
	b := newBench(t)
	for i := range 5 {
		b.create(t, Endpoint{ID: fmt.Sprintf("ep_%d", i)})
	}
	ids := func(p EndpointPage) (list []string) {
		for _, e := range p.Endpoints {
			list = append(list, e.ID)
		}
		return list
	}
	list := func(cursor string, limit int) EndpointPage {
		p, err := b.endpoints.List(t.Context(), throttle.Page{Cursor: cursor, Limit: limit})
		require.NoError(t, err)
		return p
	}
	first := list("", 2)
	require.Equal(t, []string{"ep_0", "ep_1"}, ids(first))
	// What another process changes between two pages is seen, and nothing is listed twice or left out.
	other := b.others(t)
	require.NoError(t, other.Delete(t.Context(), "ep_1"))
	_, err := other.Create(t.Context(), Endpoint{ID: "ep_00", URL: "https://example.com"})
	require.NoError(t, err)
	second := list(first.Next, 2)
	require.Equal(t, []string{"ep_2", "ep_3"}, ids(second))
	third := list(second.Next, 2)
	require.Equal(t, []string{"ep_4"}, ids(third))
	require.Empty(t, third.Next)
	require.Equal(t, []string{"ep_0", "ep_00", "ep_2", "ep_3", "ep_4"}, ids(list("", 5)))
	require.Empty(t, list("", 5).Next)
	require.Len(t, list("", 0).Endpoints, 5)

	// The list is the caller's own.
	list("", 0).Endpoints[0].Secrets[0] = EndpointSecret{}
	require.True(t, list("", 0).Endpoints[0].Secrets[0].Secret.CanSign())

	for _, page := range []throttle.Page{{Limit: -1}, {Limit: throttle.MaxPage + 1}, {Cursor: "a b"}} {
		_, err := b.endpoints.List(t.Context(), page)
		require.ErrorIs(t, err, throttle.ErrInvalid)
	}
}

func TestUpdate(t *testing.T) {
	b := newBench(t)
	before := b.create(t, Endpoint{ID: "ep_1"})
	after, err := b.endpoints.Update(t.Context(), "ep_1", func(e *Endpoint) error {
		e.URL, e.Events = "https://example.org", []string{"a.b"}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, after, b.get(t, "ep_1"))
	require.Equal(t, "https://example.org", after.URL)
	require.True(t, after.Updated.After(before.Updated))
	require.Equal(t, before.Created, after.Created)
	require.Equal(t, before.Secrets, after.Secrets)

	stop := errors.New("stop")
	for name, c := range map[string]struct {
		change func(*Endpoint) error
		want   string
	}{
		"own error": {func(*Endpoint) error { return stop }, `update endpoint "ep_1": stop`},
		"id":        {func(e *Endpoint) error { e.ID = "ep_2"; return nil }, `id "ep_2" is not allowed: want "ep_1", as it was: it cannot be changed`},
		"key":       {func(e *Endpoint) error { e.Key = "k"; return nil }, `key "k" is not allowed: want "webhook:ep_1", as it was: it cannot be changed`},
		"created":   {func(e *Endpoint) error { e.Created = time.Unix(0, 0).UTC(); return nil }, `created "1970-01-01T00:00:00Z" is not allowed`},
		"disabled":  {func(e *Endpoint) error { e.Disabled = true; return nil }, "disabled true is not allowed: want false, as it was: call Disable or Enable"},
		"reason":    {func(e *Endpoint) error { e.DisabledReason = "a"; return nil }, "disabled_reason of 1 bytes is not allowed"},
		"URL":       {func(e *Endpoint) error { e.URL = "no"; return nil }, "url without http:// or https:// in front is not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.endpoints.Update(t.Context(), "ep_1", c.change)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, after, b.get(t, "ep_1"))
		})
	}
	_, err = b.endpoints.Update(t.Context(), "ep_1", func(*Endpoint) error { return stop })
	require.ErrorIs(t, err, stop)
}

// Of changes that are made at once none is lost.
func TestChangesAtOnceAreAllMade(t *testing.T) {
	b := newBench(t)
	b.create(t, Endpoint{ID: "ep_1"})
	const writers, each = 4, 10
	var all sync.WaitGroup
	errs := make(chan error, writers*each)
	for w := range writers {
		other := b.others(t)
		all.Go(func() {
			for i := range each {
				for {
					_, err := other.Update(context.Background(), "ep_1", func(e *Endpoint) error {
						e.Events = append(e.Events, fmt.Sprintf("w%d.n%d", w, i))
						return nil
					})
					if !errors.Is(err, ErrBusy) {
						errs <- err
						break
					}
				}
			}
		})
	}
	all.Wait()
	for range writers * each {
		require.NoError(t, <-errs)
	}
	require.Len(t, b.get(t, "ep_1").Events, writers*each)
}

// What a later version has stored beside what this one knows outlives every change.
func TestUnknownFieldsSurvive(t *testing.T) {
	b := newBench(t)
	b.create(t, Endpoint{ID: "ep_1"})
	var record map[string]any
	require.NoError(t, json.Unmarshal([]byte(b.record(t, "ep_1")), &record))
	record["later"] = map[string]any{"big": json.Number("12345678901234567890"), "empty": []any{}}
	record["secrets"].([]any)[0].(map[string]any)["note"] = "hsm"
	text, err := json.Marshal(record)
	require.NoError(t, err)
	require.NoError(t, b.client.HSet(t.Context(), recordsKey, "ep_1", text).Err())

	_, err = b.endpoints.Update(t.Context(), "ep_1", func(e *Endpoint) error {
		*e = Endpoint{ID: e.ID, URL: "https://example.org", Key: e.Key, Secrets: e.Secrets, Created: e.Created}
		return nil
	})
	require.NoError(t, err)
	_, err = b.endpoints.RotateSecret(t.Context(), "ep_1", Secret{}, time.Hour)
	require.NoError(t, err)
	_, err = b.endpoints.Disable(t.Context(), "ep_1", "because")
	require.NoError(t, err)
	_, err = b.endpoints.Enable(t.Context(), "ep_1")
	require.NoError(t, err)
	require.NoError(t, b.endpoints.SetPolicy(t.Context(), "ep_1", nil))

	got := b.record(t, "ep_1")
	require.Contains(t, got, `"later":{"big":12345678901234567890,"empty":[]}`)
	require.Contains(t, got, `"note":"hsm"`)
	require.Contains(t, got, "example.org")
}

func TestDamagedRecordsAreNamedAndNotShown(t *testing.T) {
	b := newBench(t)
	b.create(t, Endpoint{ID: "good"})
	for id, text := range map[string]string{
		"bad_json": `{"url":"SEC`, "bad_id": b.record(t, "good"), "bad_secret": `{"id":"bad_secret","key":"k","secrets":[{"secret":"SEC"}]}`,
		"bad_list": `{"id":"bad_list","key":"k","secrets":["SEC"]}`, "no_secret": `{"id":"no_secret","key":"k","url":"SEC"}`,
	} {
		require.NoError(t, b.client.HSet(t.Context(), recordsKey, id, text, versionField, id).Err())
		_, err := b.endpoints.Get(t.Context(), id)
		require.EqualError(t, err, fmt.Sprintf("get endpoint %q: the record of endpoint %[1]q is damaged: delete it, or write it anew", id))
		list, err := b.endpoints.List(t.Context(), throttle.Page{})
		require.EqualError(t, err, fmt.Sprintf("the record of endpoint %q is damaged: delete it, or write it anew", id))
		require.Len(t, list.Endpoints, 1, "the others are there")
		require.NoError(t, b.endpoints.Delete(t.Context(), id))
	}
	_, err := b.endpoints.List(t.Context(), throttle.Page{})
	require.NoError(t, err)
}

func TestRotation(t *testing.T) {
	b := newBench(t)
	e := b.create(t, Endpoint{ID: "ep_1"})
	first := e.Secrets[0].Secret
	second, third := NewSecret(), NewPrivateKey()

	e, err := b.endpoints.RotateSecret(t.Context(), "ep_1", second, time.Hour)
	require.NoError(t, err)
	require.Len(t, e.Secrets, 2)
	require.True(t, e.Secrets[0].Secret.Equal(second))
	require.Zero(t, e.Secrets[0].Until)
	require.True(t, e.Secrets[1].Secret.Equal(first))
	require.Equal(t, e.Updated.Add(time.Hour), e.Secrets[1].Until)

	// The timestamp of a call and its signatures go together: while both sign, receivers may know either.
	for when, n := range map[time.Time]int{e.Updated: 2, e.Secrets[1].Until.Add(-1): 2, e.Secrets[1].Until: 1} {
		require.Len(t, e.signing(when), n)
	}
	again, err := b.endpoints.RotateSecret(t.Context(), "ep_1", second, 2*time.Hour)
	require.NoError(t, err)
	require.Equal(t, e.Secrets, again.Secrets, "a call that is repeated")

	e, err = b.endpoints.RotateSecret(t.Context(), "ep_1", third, 2*time.Hour)
	require.NoError(t, err)
	require.Len(t, e.Secrets, 3)
	require.Equal(t, e.Updated.Add(2*time.Hour), e.Secrets[1].Until)
	require.Equal(t, again.Secrets[1].Until, e.Secrets[2].Until, "an end does not move away")
	require.Equal(t, e, b.get(t, "ep_1"))
	leaked, err := b.endpoints.RotateSecret(t.Context(), "ep_1", third, 0)
	require.NoError(t, err)
	require.Len(t, leaked.Secrets, 1, "the former ones end at once")

	e, err = b.endpoints.RotateSecret(t.Context(), "ep_1", Secret{}, 0)
	require.NoError(t, err)
	require.Len(t, e.Secrets, 1, "at once")
	for i := range MaxSecrets - 1 {
		_, err = b.endpoints.RotateSecret(t.Context(), "ep_1", Secret{}, time.Hour)
		require.NoError(t, err, i)
	}
	_, err = b.endpoints.RotateSecret(t.Context(), "ep_1", Secret{}, time.Hour)
	require.EqualError(t, err, "keep 1h0m0s is not allowed: want a shorter one: there would be 11 secrets, and may be 10")

	public, _ := third.Public()
	_, err = b.endpoints.RotateSecret(t.Context(), "ep_1", public, 0)
	require.EqualError(t, err, "secret whpk_*** is not allowed: want one that can sign: whsec_… or whsk_…")
	for _, keep := range []time.Duration{-1, MaxKeep + 1} {
		_, err = b.endpoints.RotateSecret(t.Context(), "ep_1", Secret{}, keep)
		require.ErrorIs(t, err, throttle.ErrInvalid)
	}
}

// A write whose answer was lost is sent again by the client, and is then no conflict.
func TestAWriteMayBeRepeated(t *testing.T) {
	b := newBench(t)
	s := b.endpoints.store
	for _, c := range []struct {
		before, after string
		want          bool
	}{
		{"", "1", true}, {"", "1", true}, {"", "2", false}, {"1", "2", true}, {"1", "2", true}, {"1", "3", false},
		{"1", "", false}, {"2", "", true}, {"2", "", true}, {"2", "3", false},
	} {
		got, err := s.put(t.Context(), "a", c.before, c.after)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%+v", c)
	}
}
