package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func TestReceiver(t *testing.T) {
	const key = "a/b?c&é\n%"
	r, err := startReceiver()
	require.NoError(t, err)
	defer r.close()
	d := newDestination(key, throttle.DefaultPolicy.Limit)
	d.add("1", []byte("one"))
	d.add("2", []byte("two"))
	r.expect([]destination{d})

	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for _, c := range []struct {
		key, id, body string
		status        int
		want          arrival
	}{
		{key, "1", "one", 500, arrival{attempt: 1, intact: true}},
		{key, "2", "twO", 204, arrival{attempt: 1, accepted: true}},
		{key, "1", "one", 204, arrival{attempt: 2, accepted: true, intact: true}},
		{key, "1", "one", 204, arrival{attempt: 3, accepted: true, again: true, intact: true}},
		{key, "3", "three", 404, arrival{}},
		{"b", "1", "one", 404, arrival{}},
	} {
		resp, err := client.Post(r.url(c.key, c.id), "text/plain", strings.NewReader(c.body))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, c.status, resp.StatusCode, c)
		all := r.seen()
		last := all[len(all)-1]
		require.False(t, last.at.IsZero())
		c.want.hook, c.want.at = hook{c.key, c.id}, last.at
		require.Equal(t, c.want, last)
	}
	require.Equal(t, 2, r.delivered(key))
	require.Equal(t, "2 of 2 events", r.tally())
	<-r.done
}
