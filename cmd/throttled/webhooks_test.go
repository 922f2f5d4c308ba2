package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker/webhook"
)

// From an endpoint on the command line to a delivery that its receiver verifies.
func TestWebhooks(t *testing.T) {
	r := throttletest.StartRedis(t)
	type call struct {
		header http.Header
		body   string
	}
	calls := make(chan call, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		calls <- call{req.Header, string(body)}
	}))
	t.Cleanup(receiver.Close)
	s := begin(nil, "serve", "--listen", "none", "--allow-network", "127.0.0.0/8", "--redis", r.URL())
	t.Cleanup(func() {
		s.signals <- syscall.SIGTERM
		require.Zero(t, s.exit(t, patience))
	})

	var made struct {
		Endpoint struct{ ID, Key string }
		Secret   string
	}
	created := ask(t, r, "webhooks", "create", "--id", "ep_1", "--url", receiver.URL+"/TOK1", "--event", "invoice.*", "--header", "X-Key: SEC2", "--json")
	require.NoError(t, json.Unmarshal([]byte(created), &made))
	require.Equal(t, "webhook:ep_1", made.Endpoint.Key)
	secret, err := webhook.ParseSecret(made.Secret)
	require.NoError(t, err)
	require.Regexp(t, `(?m)^ep_1 +webhook:ep_1 +127\.0\.0\.1:\d+ +invoice\.\* +enabled `, ask(t, r, "webhooks", "list"))
	for _, shown := range []string{ask(t, r, "webhooks", "list"), ask(t, r, "webhooks", "get", "ep_1"), ask(t, r, "webhooks", "get", "ep_1", "--json")} {
		for _, hidden := range []string{made.Secret, "SEC2"} {
			require.NotContains(t, shown, hidden)
		}
	}

	require.Equal(t, "no endpoint wants it\n", ask(t, r, "webhooks", "publish", "user.made", "--data", "{}"))
	require.Contains(t, ask(t, r, "webhooks", "publish", "invoice.paid", "--id", "msg_1", "--data", `{"n":1}`), "ep_1")
	got := <-calls
	require.Equal(t, `{"n":1}`, got.body)
	require.Equal(t, "SEC2", got.header.Get("X-Key"))
	verifier, err := webhook.NewVerifier(secret)
	require.NoError(t, err)
	require.NoError(t, verifier.Verify(got.header, []byte(got.body), time.Now()))

	rotated := ask(t, r, "webhooks", "rotate", "ep_1", "--keep", "1h")
	require.Contains(t, rotated, "whsec_")
	require.NotContains(t, rotated, made.Secret)
	require.Contains(t, ask(t, r, "webhooks", "disable", "ep_1", "--reason", "moving"), "disabled: moving")
	require.Contains(t, ask(t, r, "holds"), "webhook:ep_1")
	require.Contains(t, ask(t, r, "webhooks", "update", "ep_1", "--event", "a", "--event", "b.*"), "a, b.*")
	require.Contains(t, ask(t, r, "webhooks", "enable", "ep_1"), "enabled")
	require.Equal(t, "deleted ep_1\n", ask(t, r, "webhooks", "delete", "ep_1"))

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"create"}, "--url is missing"},
		{[]string{"create", "--url", "ftp://x"}, "url"},
		{[]string{"create", "--url", "https://example.com", "--header", "SEC3"}, "--header is not allowed: want 'NAME: VALUE'"},
		{[]string{"create", "--url", "https://example.com", "--header", "Host: x"}, "Host"},
		{[]string{"update", "ep_1"}, "there is nothing to change"},
		{[]string{"get", "ep_1"}, "ep_1"},
		{[]string{"publish", "t"}, "give one of --data and --data-file"},
		{[]string{"publish", "t", "--data-file", "/nowhere/at/all"}, "--data-file"},
	} {
		code, _, stderr := try(t, r, append([]string{"webhooks"}, c.args...)...)
		require.Equal(t, exitInvalid, code, "%v: %s", c.args, stderr)
		require.Contains(t, stderr, c.want)
		require.NotContains(t, stderr, "SEC3")
	}
}
