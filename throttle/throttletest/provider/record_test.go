package provider_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/throttle/throttletest/provider"
)

func TestConnections(t *testing.T) {
	s := provider.Start(t, provider.Answer{Body: "kept"})
	require.Zero(t, s.Connections())
	client := newClient(t)
	for range 5 {
		post(t, client, s.URL)
	}
	require.Equal(t, 1, s.Connections(), "kept")
	client.CloseIdleConnections()
	post(t, client, s.URL)
	require.Equal(t, 2, s.Connections())
}

func TestConnectionsOfCallsAtOnce(t *testing.T) {
	gate := make(chan struct{})
	s := provider.Start(t, provider.Func(func(http.ResponseWriter, *http.Request) { <-gate }))
	client := newClient(t)
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			if resp, err := client.Get(s.URL); err == nil {
				_ = resp.Body.Close()
			}
		})
	}
	require.Eventually(t, func() bool { return s.Count() == 4 }, patience, time.Millisecond)
	for _, c := range s.Calls() {
		require.Zero(t, c.Status, "not answered yet")
	}
	close(gate)
	calls.Wait()
	require.Equal(t, 4, s.Connections())
	for _, c := range s.Calls() {
		require.Equal(t, 200, c.Status)
	}
}

func TestRecord(t *testing.T) {
	h, err := provider.Func(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}).Handler()
	require.NoError(t, err)
	rec := provider.NewRecord(h, func(r *http.Request) string { return r.Host })
	began := time.Now()
	for _, method := range []string{http.MethodPut, http.MethodGet} {
		rec.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, "http://api.test/x", nil))
	}
	calls := rec.Calls()
	for i := range calls {
		require.WithinRange(t, calls[i].At, began, time.Now())
		calls[i].At = time.Time{}
	}
	require.Equal(t, []provider.Call{
		{Key: "api.test", Method: "PUT", Status: 200},
		{Key: "api.test", Method: "GET", Status: 429, Refused: true},
	}, calls)
	require.Len(t, rec.Accepted("api.test"), 1)
	require.Len(t, rec.Refused("api.test"), 1)
	require.Empty(t, rec.Accepted("/x"))
}

func TestAttachKeepsWhatWasThere(t *testing.T) {
	rec := provider.NewRecord(http.NotFoundHandler(), nil)
	var seen []http.ConnState
	s := &http.Server{ReadHeaderTimeout: time.Second}
	rec.Attach(s)
	rec.Attach(s) // twice, which must not hide the first
	s.ConnState(nil, http.StateActive)
	require.Equal(t, 1, rec.Connections())

	s.ConnState = func(_ net.Conn, state http.ConnState) { seen = append(seen, state) }
	rec.Attach(s)
	s.ConnState(nil, http.StateClosed)
	require.Equal(t, []http.ConnState{http.StateClosed}, seen)
}

func TestEventsGoToThePaceChecker(t *testing.T) {
	s := provider.Start(t, provider.Quota{Limit: 2, Window: time.Hour})
	require.Equal(t, []int{200, 200, 429}, statuses(t, s, 3))
	reports, err := throttletest.Measure(map[string]throttle.Limit{
		"/": {Rate: 1, Period: time.Hour, Burst: 2},
	}, s.Events(), nil)
	require.NoError(t, err)
	require.Equal(t, 3, reports[0].Count)
	require.InDelta(t, 1, reports[0].Excess, 0.1, "the refused call was one too many")
}
