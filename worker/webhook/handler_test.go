package webhook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker"
	"github.com/weirq/weir/worker/httpjob"
)

var _ Caller = (*httpjob.Handler)(nil)

const patience = 30 * time.Second

// caller makes real calls, to this machine too.
func caller(t *testing.T) Caller {
	t.Helper()
	h := httpjob.NewHandler(httpjob.Config{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	t.Cleanup(h.CloseIdleConnections)
	return h
}

// A hand is a clock that is set by hand.
type hand struct {
	mu sync.Mutex
	at time.Time
}

func (c *hand) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *hand) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// An arrival is a call as the receiver saw it.
type arrival struct {
	header http.Header
	body   []byte
}

// receive starts a receiver, whose answer is told the number of the call, from 1.
func receive(t *testing.T, answer func(n int, a arrival) int) (url string, arrivals chan arrival) {
	t.Helper()
	arrivals = make(chan arrival, 100)
	var mu sync.Mutex
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a := arrival{r.Header, body}
		mu.Lock()
		n++
		status := answer(n, a)
		mu.Unlock()
		arrivals <- a
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s.URL, arrivals
}

func next(t *testing.T, arrivals chan arrival) arrival {
	t.Helper()
	select {
	case a := <-arrivals:
		return a
	case <-time.After(patience):
		require.Fail(t, "no call arrived")
		return arrival{}
	}
}

// run runs a scheduler and a worker until the test ends.
func (b *bench) run(t *testing.T, config worker.Config, h asynq.Handler) {
	t.Helper()
	scheduler, err := throttle.NewScheduler(b.queue, worker.NewDispatcher(b.client), throttle.SchedulerConfig{})
	require.NoError(t, err)
	server, err := worker.NewServer(b.client, b.queue, config)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = scheduler.Run(ctx) })
	parts.Go(func() { _ = server.Run(ctx, h) })
	t.Cleanup(func() {
		stop()
		parts.Wait()
	})
}

func (b *bench) handler(t *testing.T, c Caller, now func() time.Time) *Handler {
	t.Helper()
	h, err := NewHandler(Config{Endpoints: b.endpoints, Caller: c, Now: now})
	require.NoError(t, err)
	return h
}

// What is delivered is what was published, signed once, whatever the endpoint's own headers are.
func TestADeliveryOnTheWire(t *testing.T) {
	b := newBench(t)
	url, arrivals := receive(t, func(int, arrival) int { return 204 })
	b.create(t, Endpoint{
		ID: "ep_1", URL: url + "/hook", Secrets: []EndpointSecret{{Secret: parse(t, symmetricText)}},
		Headers: map[string]string{"X-Own": "é", "CONTENT-TYPE": "application/cloudevents+json"},
	})
	b.create(t, Endpoint{ID: "ep_2", URL: url + "/hook", Secrets: []EndpointSecret{{Secret: NewSecret()}, {Secret: NewPrivateKey()}}})
	// A record that nobody checked does not forge a signature either.
	record := bytes.Replace([]byte(b.record(t, "ep_1")), []byte(`"X-Own"`), []byte(`"Webhook-ID":"forged","WEBHOOK-SIGNATURE":"v1,forged","X-Own"`), 1)
	require.NoError(t, b.client.HSet(t.Context(), recordsKey, "ep_1", record, versionField, "x").Err())

	at := time.Unix(1700000000, 0)
	h := b.handler(t, caller(t), func() time.Time { return at })
	b.run(t, worker.Config{}, h)
	body := []byte(`{"a":1,"b":"é<&>"}`)
	_, err := b.publisher(t).Publish(t.Context(), Event{ID: "msg_2b7f", Type: "a", Data: body})
	require.NoError(t, err)
	byType := map[string]arrival{}
	for range 2 {
		a := next(t, arrivals)
		require.Equal(t, body, a.body)
		require.Len(t, a.body, 19)
		require.Equal(t, []string{"msg_2b7f"}, a.header["Webhook-Id"])
		require.Equal(t, []string{"1700000000"}, a.header["Webhook-Timestamp"])
		require.Len(t, a.header["Webhook-Signature"], 1)
		require.Len(t, a.header["Content-Type"], 1)
		for name := range a.header {
			require.NotContains(t, name, ":")
		}
		byType[a.header.Get("Content-Type")] = a
	}
	one := byType["application/cloudevents+json"]
	require.Equal(t, "v1,RhA/n7wmqLe/lVct+i7NRL/vsPdFdOuK7G8MLIVMF7I=", one.header.Get(SignatureHeader))
	require.Equal(t, "é", one.header.Get("X-Own"))
	two := byType["application/json"]
	for _, s := range b.get(t, "ep_2").Secrets {
		require.NoError(t, verifier(t, s.Secret).Verify(two.header, two.body, at))
	}
}

// An attempt an hour after the first is as fresh as the first was.
func TestEveryAttemptIsSignedAnew(t *testing.T) {
	b := newBench(t)
	secret := NewSecret()
	clock := &hand{at: time.Now().Truncate(time.Second)}
	v := verifier(t, secret)
	v.Tolerance = 300 * time.Second
	var verdicts []error
	url, arrivals := receive(t, func(n int, a arrival) int {
		verdicts = append(verdicts, v.Verify(a.header, a.body, clock.now()))
		clock.forward(30 * time.Minute)
		if n < 3 {
			return 500
		}
		return 200
	})
	b.create(t, Endpoint{ID: "ep_1", URL: url, Secrets: []EndpointSecret{{Secret: secret}}})
	b.run(t, worker.Config{Retry: worker.RetryPolicy{Base: time.Millisecond, Cap: time.Millisecond}}, b.handler(t, caller(t), clock.now))
	_, err := b.publisher(t).Publish(t.Context(), Event{ID: "msg_1", Type: "a", Data: []byte("{}")})
	require.NoError(t, err)

	first, second, third := next(t, arrivals), next(t, arrivals), next(t, arrivals)
	require.Equal(t, []error{nil, nil, nil}, verdicts)
	seconds := func(a arrival) int {
		n, err := strconv.Atoi(a.header.Get(TimestampHeader))
		require.NoError(t, err)
		return n
	}
	require.Equal(t, 3600, seconds(third)-seconds(first))
	signatures := map[string]bool{}
	for _, a := range []arrival{first, second, third} {
		require.Equal(t, "msg_1", a.header.Get(IDHeader))
		require.Equal(t, first.body, a.body)
		signatures[a.header.Get(SignatureHeader)] = true
	}
	require.Len(t, signatures, 3)
	require.ErrorIs(t, v.Verify(first.header, first.body, clock.now()), ErrTooOld)
}

// Jobs that wait are delivered as the endpoint is at their turn.
func TestWaitingJobsFollowTheirEndpoint(t *testing.T) {
	b := newBench(t)
	url, arrivals := receive(t, func(int, arrival) int { return 200 })
	b.create(t, Endpoint{ID: "ep_1", URL: url})
	b.run(t, worker.Config{}, b.handler(t, caller(t), nil))
	require.NoError(t, b.queue.Pause(t.Context(), "webhook:ep_1"))
	_, err := b.publisher(t).Publish(t.Context(), Event{Type: "a"})
	require.NoError(t, err)

	next1 := NewPrivateKey()
	_, err = b.endpoints.RotateSecret(t.Context(), "ep_1", next1, time.Hour)
	require.NoError(t, err)
	_, err = b.endpoints.Update(t.Context(), "ep_1", func(e *Endpoint) error {
		e.Headers = map[string]string{"X-New": "1"}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, b.queue.Resume(t.Context(), "webhook:ep_1"))
	a := next(t, arrivals)
	require.Equal(t, "1", a.header.Get("X-New"))
	for _, s := range b.get(t, "ep_1").Secrets { // the old one too
		require.NoError(t, verifier(t, s.Secret).Verify(a.header, a.body, time.Now()))
	}
}

func TestADisabledEndpointsJobsWait(t *testing.T) {
	b := newBench(t)
	url, arrivals := receive(t, func(int, arrival) int { return 200 })
	e := b.create(t, Endpoint{ID: "ep_1", URL: url})
	b.create(t, Endpoint{ID: "ep_2", URL: url})
	h := b.handler(t, caller(t), nil)
	p := b.publisher(t)
	for i := range 3 {
		_, err := p.Publish(t.Context(), Event{ID: fmt.Sprintf("msg_%d", i), Type: "a"})
		require.NoError(t, err)
	}
	_, err := b.endpoints.Disable(t.Context(), "ep_1", "")
	require.NoError(t, err)
	// As if Disable had got no further than the record.
	require.NoError(t, b.queue.Resume(t.Context(), e.Key))
	b.run(t, worker.Config{Retry: worker.RetryPolicy{MaxAttempts: 1}}, h)
	for range 3 {
		next(t, arrivals) // of the other
	}
	require.Eventually(t, func() bool { return len(b.paused(t)) == 1 }, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		key, err := b.queue.Key(t.Context(), e.Key)
		return err == nil && key.Waiting+key.Delayed == 3
	}, patience, 10*time.Millisecond)
	require.Empty(t, arrivals)

	_, err = b.endpoints.Enable(t.Context(), "ep_1")
	require.NoError(t, err)
	for range 3 {
		next(t, arrivals) // although only one attempt is allowed: waiting was none
	}
}

func TestADeletedEndpointsJobsAreDead(t *testing.T) {
	b := newBench(t)
	e := b.create(t, Endpoint{ID: "ep_1"})
	_, err := b.publisher(t).Publish(t.Context(), Event{ID: "msg_1", Type: "a"})
	require.NoError(t, err)
	_, err = b.endpoints.Disable(t.Context(), "ep_1", "")
	require.NoError(t, err)
	require.NoError(t, b.endpoints.Delete(t.Context(), "ep_1"))
	b.run(t, worker.Config{}, b.handler(t, caller(t), nil))
	require.Eventually(t, func() bool {
		info, err := b.queue.Job(t.Context(), e.Key, "msg_1/ep_1")
		return err == nil && info.State == throttle.Dead && info.Attempts == 1
	}, patience, 10*time.Millisecond)
}

// fake is a caller that calls nobody.
type fake func(httpjob.Request) error

func (f fake) Call(_ context.Context, r httpjob.Request) error { return f(r) }

func TestWhatIsNoDeliveryFailsForGood(t *testing.T) {
	b := newBench(t)
	b.create(t, Endpoint{ID: "ep_1"})
	h := b.handler(t, fake(func(httpjob.Request) error { return nil }), nil)
	for name, c := range map[string]struct {
		headers map[string]string
		want    string
	}{
		"good":        {map[string]string{":endpoint": "ep_1", "webhook-id": "msg_1"}, ""},
		"no endpoint": {map[string]string{"webhook-id": "msg_1"}, "webhook: the job has no :endpoint or no webhook-id, so it was not made by Publish: skip retry for the task"},
		"no id":       {map[string]string{":endpoint": "ep_1"}, "webhook: the job has no :endpoint or no webhook-id, so it was not made by Publish: skip retry for the task"},
		"odd id":      {map[string]string{":endpoint": "ep_1", "webhook-id": "a.b"}, "webhook: the job has no :endpoint or no webhook-id, so it was not made by Publish: skip retry for the task"},
		"deleted":     {map[string]string{":endpoint": "ep_2", "webhook-id": "msg_1"}, `webhook: endpoint "ep_2" was deleted: skip retry for the task`},
	} {
		t.Run(name, func(t *testing.T) {
			err := h.ProcessTask(t.Context(), asynq.NewTaskWithHeaders(Type, nil, c.headers))
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.want)
			require.ErrorIs(t, err, asynq.SkipRetry)
		})
	}
	// A record that is damaged can be mended: that is worth another attempt.
	require.NoError(t, b.client.HSet(t.Context(), recordsKey, "ep_3", "SECRET").Err())
	err := h.ProcessTask(t.Context(), asynq.NewTaskWithHeaders(Type, nil, map[string]string{":endpoint": "ep_3", "webhook-id": "a"}))
	require.ErrorContains(t, err, `the record of endpoint "ep_3" is damaged`)
	require.NotErrorIs(t, err, asynq.SkipRetry)
	require.NotContains(t, err.Error(), "SECRET")
}

func TestAnEndpointIsLookedUpEveryTwoSeconds(t *testing.T) {
	b := newBench(t)
	b.create(t, Endpoint{ID: "ep_1", URL: "https://example.com/1"})
	clock := &hand{at: time.Now()}
	var url string
	h := b.handler(t, fake(func(r httpjob.Request) error { url = r.URL; return nil }), clock.now)
	called := func() string {
		require.NoError(t, h.ProcessTask(t.Context(), asynq.NewTaskWithHeaders(Type, nil, map[string]string{":endpoint": "ep_1", "webhook-id": "a"})))
		return url
	}
	require.Equal(t, "https://example.com/1", called())
	_, err := b.endpoints.Update(t.Context(), "ep_1", func(e *Endpoint) error { e.URL = "https://example.com/2"; return nil })
	require.NoError(t, err)
	clock.forward(cacheTime - 1)
	require.Equal(t, "https://example.com/1", called())
	clock.forward(1)
	require.Equal(t, "https://example.com/2", called())
	clock.forward(-time.Hour)
	_, err = b.endpoints.Update(t.Context(), "ep_1", func(e *Endpoint) error { e.URL = "https://example.com/3"; return nil })
	require.NoError(t, err)
	require.Equal(t, "https://example.com/3", called(), "the clock was set back")
}

// Whatever becomes of a delivery, nothing tells a secret.
func TestNoSecretIsTold(t *testing.T) {
	b := newBench(t)
	var log bytes.Buffer
	var mu sync.Mutex
	logger := slog.New(slog.NewJSONHandler(writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(p)
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	url, _ := receive(t, func(int, arrival) int { return 500 })
	secret := NewSecret()
	panics := fake(func(r httpjob.Request) error { panic(r.Headers) })
	for id, target := range map[string]string{
		"answers_500": url + "/hook/TOK2?token=SEC3", "refuses": "http://u:PASS1@127.0.0.1:1/hook/TOK2?token=SEC3",
		"blocked": "http://u:PASS1@10.0.0.1/hook/TOK2?token=SEC3", "panics": "http://u:PASS1@127.0.0.2:1/hook/TOK2?token=SEC3",
	} {
		b.create(t, Endpoint{ID: id, URL: target, Secrets: []EndpointSecret{{Secret: secret}}, Headers: map[string]string{"Authorization": "Bearer SEC4"}})
	}
	real, broken := b.handler(t, caller(t), nil), b.handler(t, panics, nil)
	b.run(t, worker.Config{Logger: logger, Retry: worker.RetryPolicy{MaxAttempts: 1}}, asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		if task.Headers()[endpointHeader] == "panics" {
			return broken.ProcessTask(ctx, task)
		}
		return real.ProcessTask(ctx, task)
	}))
	got, err := b.publisher(t).Publish(t.Context(), Event{ID: "msg_1", Type: "a", Data: []byte(`{"card":"SEC5"}`)})
	require.NoError(t, err)
	told := ""
	for _, d := range got.Deliveries {
		require.Eventually(t, func() bool {
			info, err := b.queue.Job(t.Context(), d.Key, d.ID)
			if err != nil || info.State != throttle.Dead {
				return false
			}
			told += fmt.Sprintf("%s %+v\n", info.Reason, info.History)
			return true
		}, patience, 10*time.Millisecond, d.ID)
	}
	mu.Lock()
	told += log.String()
	mu.Unlock()
	require.Contains(t, told, "500 Internal Server Error")
	for _, s := range []string{"PASS1", "TOK2", "SEC3", "SEC4", "SEC5", secret.Text()[6:], "v1,", "whsec_"} {
		require.NotContains(t, told, s)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestAHandlerNeedsEndpointsAndACaller(t *testing.T) {
	_, err := NewHandler(Config{})
	require.EqualError(t, err, "endpoints nil is not allowed: want those from NewEndpoints")
	_, err = NewHandler(Config{Endpoints: &Endpoints{}})
	require.EqualError(t, err, "caller nil is not allowed: want one that makes calls, such as an httpjob.Handler")
}
