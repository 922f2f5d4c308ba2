package provider_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weirq/weir/throttle/throttletest/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what has to happen.
const patience = 10 * time.Second

// newClient makes a client with connections of its own that follows no redirect.
func newClient(tb testing.TB) *http.Client {
	tb.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 10, MaxResponseHeaderBytes: 64 << 10}
	tb.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       patience,
	}
}

// post makes a call and reads its answer to the end.
func post(tb testing.TB, c *http.Client, url string) (status int, h http.Header, body string) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, url, strings.NewReader("a job"))
	require.NoError(tb, err)
	resp, err := c.Do(req)
	require.NoError(tb, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(tb, err)
	return resp.StatusCode, resp.Header, string(b)
}

// leave makes a call, and goes once it has come in.
func leave(tb testing.TB, c *http.Client, s *provider.Server) {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil && s.Count() == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("a job"))
	require.NoError(tb, err)
	resp, err := c.Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(tb, resp.Body.Close())
	}
	require.ErrorIs(tb, err, context.Canceled)
}
