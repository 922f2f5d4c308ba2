package httpjob

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/worker"
)

// here is where the receivers of tests are.
var here = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// serve starts a receiver that counts its connections, and a handler for it.
func serve(tb testing.TB, answer http.HandlerFunc) (h *Handler, base string, connections *atomic.Int64) {
	tb.Helper()
	return serveWith(tb, Config{AllowNetworks: here}, answer)
}

func serveWith(tb testing.TB, c Config, answer http.HandlerFunc) (h *Handler, base string, connections *atomic.Int64) {
	tb.Helper()
	connections = new(atomic.Int64)
	s := httptest.NewUnstartedServer(answer)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	h = NewHandler(c)
	tb.Cleanup(func() {
		h.CloseIdleConnections()
		s.Close()
	})
	return h, s.URL, connections
}

// process runs one job through the handler, the way a worker does.
func process(ctx context.Context, t *testing.T, h *Handler, r Request) error {
	t.Helper()
	j, err := r.Job("k")
	require.NoError(t, err)
	return h.ProcessTask(ctx, asynq.NewTaskWithHeaders(j.Type, j.Payload, j.Headers))
}

func TestHandlerJudgesByStatus(t *testing.T) {
	h, base, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscan(strings.TrimPrefix(r.URL.Path, "/"), &status)
		w.WriteHeader(status)
	})
	for _, status := range []int{200, 201, 202, 204, 207, 299} {
		require.NoError(t, process(t.Context(), t, h, Request{URL: fmt.Sprintf("%s/%d", base, status)}), status)
	}
	host := strings.TrimPrefix(base, "http://")
	for status, text := range map[int]string{
		300: "300 Multiple Choices", 304: "304 Not Modified", 400: "400 Bad Request", 404: "404 Not Found", 408: "408 Request Timeout",
		410: "410 Gone", 429: "429 Too Many Requests", 500: "500 Internal Server Error", 503: "503 Service Unavailable", 599: "599",
	} {
		err := process(t.Context(), t, h, Request{URL: fmt.Sprintf("%s/%d", base, status)})
		require.EqualError(t, err, "POST to "+host+": "+text)
		var call *CallError
		require.ErrorAs(t, err, &call)
		require.Equal(t, status, call.Status)
		require.Equal(t, status == 410, errors.Is(err, asynq.SkipRetry), status)
		require.Equal(t, status == 429, errors.Is(err, worker.ErrRefused), status)
		require.NotErrorIs(t, err, asynq.RevokeTask)
	}
}

func TestHandlerSendsWhatTheJobSays(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	type arrival struct {
		method, uri, host string
		header            http.Header
		length            int64
		sum               [sha256.Size]byte
	}
	arrivals := make(chan arrival, 1)
	h, base, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		arrivals <- arrival{r.Method, r.RequestURI, r.Host, r.Header, r.ContentLength, sha256.Sum256(body)}
	})
	host := strings.TrimPrefix(base, "http://")
	for name, body := range map[string][]byte{
		"none": nil, "zero and high bytes": []byte("\x00\xff\n\r{"), "lone continuation byte": {0x80},
		"every byte": every, "line ends": []byte("\r\n\r\n"), "one MiB": bytes.Repeat(every, 4096),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, process(t.Context(), t, h, Request{
				Method: "PATCH", URL: base + "/a%2Fb/?x=1&y", Headers: map[string]string{"x-one": "é; <&>", "Authorization": "Bearer t"}, Body: body,
			}))
			got := <-arrivals
			require.Equal(t, "PATCH", got.method)
			require.Equal(t, "/a%2Fb/?x=1&y", got.uri)
			require.Equal(t, host, got.host)
			require.EqualValues(t, len(body), got.length)
			require.Equal(t, sha256.Sum256(body), got.sum)
			require.Equal(t, http.Header{
				"X-One": {"é; <&>"}, "Authorization": {"Bearer t"},
				"User-Agent": {"weir/" + version()}, "Content-Length": {fmt.Sprint(len(body))},
			}, got.header, "nothing is invented but the User-Agent")
		})
	}
}

func TestHandlerKeepsAGivenUserAgent(t *testing.T) {
	agents := make(chan []string, 1)
	h, base, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) { agents <- r.Header["User-Agent"] })
	require.NoError(t, process(t.Context(), t, h, Request{URL: base, Headers: map[string]string{"user-agent": "mine/1"}}))
	require.Equal(t, []string{"mine/1"}, <-agents)
	require.NoError(t, process(t.Context(), t, h, Request{URL: base, Headers: map[string]string{"User-Agent": ""}}))
	require.Empty(t, <-agents, "an empty one switches the header off")
}

func TestHandlerDoesNotFollowRedirects(t *testing.T) {
	var elsewhere atomic.Int64
	_, other, _ := serve(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	h, base, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscan(strings.TrimPrefix(r.URL.Path, "/"), &status)
		w.Header().Set("Location", other+"/landing")
		w.WriteHeader(status)
	})
	for _, status := range []int{301, 302, 303, 307, 308} {
		err := process(t.Context(), t, h, Request{URL: fmt.Sprintf("%s/%d", base, status), Body: []byte("x")})
		var call *CallError
		require.ErrorAs(t, err, &call)
		require.Equal(t, status, call.Status)
	}
	require.Zero(t, elsewhere.Load())
}

func TestHandlerReusesConnections(t *testing.T) {
	answers := map[string]struct {
		status, bytes int
	}{
		"no body": {200, 0}, "small body": {200, 2 << 10}, "failure with a body": {500, 2 << 10}, "body of exactly the bound": {200, MaxAnswerBody},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			h, base, connections := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(answer.status)
				_, _ = w.Write(make([]byte, answer.bytes))
			})
			const workers = 4
			var all sync.WaitGroup
			for range workers {
				all.Go(func() {
					for range 50 {
						_ = h.call(context.Background(), Request{URL: base, Body: []byte("x")})
					}
				})
			}
			all.Wait()
			require.LessOrEqual(t, connections.Load(), int64(2*workers), "200 calls by %d workers", workers)
		})
	}
}

func TestHandlerDoesNotReadALargeAnswer(t *testing.T) {
	var written atomic.Int64
	h, base, connections := serve(t, func(w http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 32<<10)
		for r.Context().Err() == nil {
			n, err := w.Write(chunk)
			written.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	require.NoError(t, process(t.Context(), t, h, Request{URL: base}), "the status is the outcome")
	require.NoError(t, process(t.Context(), t, h, Request{URL: base}))
	require.EqualValues(t, 2, connections.Load(), "the connection is given up")
	require.Less(t, written.Load(), int64(64<<20))
}

func TestHandlerDoesNotWaitForASlowBody(t *testing.T) {
	h, base, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // the body never ends
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*answerTime)
	defer cancel()
	require.NoError(t, process(ctx, t, h, Request{URL: base}))
	require.NoError(t, ctx.Err(), "ended before the timeout of the attempt")
}

func TestHandlerEndsWithTheContext(t *testing.T) {
	h, base, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not see the client leave
		<-r.Context().Done()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := process(ctx, t, h, Request{URL: base + "/SECRET?token=SECRET"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotContains(t, err.Error(), "SECRET")

	stopping := errors.New("the worker is stopping")
	causeCtx, stop := context.WithCancelCause(t.Context())
	stop(stopping)
	require.ErrorIs(t, process(causeCtx, t, h, Request{URL: base}), stopping)
}

func TestHandlerRefusesWhatIsNoCall(t *testing.T) {
	h := NewHandler(Config{})
	for _, headers := range []map[string]string{nil, {":method": "POST"}, {":url": "ftp://a"}, {":url": "http://a", ":sign": "x"}} {
		err := h.ProcessTask(t.Context(), asynq.NewTaskWithHeaders(Type, []byte("{}"), headers))
		require.ErrorIs(t, err, asynq.SkipRetry)
	}
}

// A listener that answers what it likes: the request itself, for one.
func rawServer(t *testing.T, answer func(net.Conn)) (base string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = c.Close() }()
				answer(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return "http://" + l.Addr().String()
}

func TestHandlerErrorsHoldNoSecrets(t *testing.T) {
	echo := rawServer(t, func(c net.Conn) {
		line, _ := bufio.NewReader(c).ReadString('\n')
		_, _ = io.WriteString(c, line)
	})
	reason := rawServer(t, func(c net.Conn) {
		line, _ := bufio.NewReader(c).ReadString('\n')
		_, _ = fmt.Fprintf(c, "HTTP/1.1 500 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", strings.TrimSpace(line))
	})
	header := rawServer(t, func(c net.Conn) {
		line, _ := bufio.NewReader(c).ReadString('\n')
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\n%s\r\n\r\n", strings.TrimSpace(line))
	})
	closes := rawServer(t, func(c net.Conn) { _, _ = bufio.NewReader(c).ReadString('\n') })
	tunnels := rawServer(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		_, _ = in.ReadString('\n')
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, _ = io.Copy(io.Discard, in) // until the client leaves
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refused := "http://" + l.Addr().String()
	require.NoError(t, l.Close())
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshakes it sees fail
	secure.StartTLS()
	defer secure.Close()
	h, plain, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })

	for _, c := range []struct{ name, base, want string }{
		{"status", plain, "503 Service Unavailable"},
		{"connection refused", refused, "connection refused"},
		{"answer repeats the request", echo, errUnusable.Error()},
		{"reason phrase repeats the request", reason, "500 Internal Server Error"},
		{"header repeats the request", header, errUnusable.Error()},
		{"hangs up", closes, ""},
		{"switches protocols", tunnels, "101 Switching Protocols"},
		{"unknown certificate", secure.URL, "certificate"},
		{"TLS to a plain server", strings.Replace(plain, "http:", "https:", 1), "HTTP response to HTTPS client"},
		{"name that is not there", "http://nowhere.invalid", "nowhere.invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := url.Parse(c.base)
			require.NoError(t, err)
			u.User = url.UserPassword("USER1", "PASS2")
			err = process(t.Context(), t, h, Request{
				URL: u.String() + "/TOK3?token=SEC4", Headers: map[string]string{"X-Signature": "SEC5"}, Body: []byte("BODY6"),
			})
			require.ErrorContains(t, err, "POST to "+u.Host+": ")
			require.ErrorContains(t, err, c.want)
			for e := err; e != nil; e = errors.Unwrap(e) {
				for _, secret := range []string{"USER1", "PASS2", "TOK3", "SEC4", "SEC5", "BODY6"} {
					require.NotContains(t, e.Error(), secret)
				}
			}
		})
	}
}
