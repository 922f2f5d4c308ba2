package httpjob

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"
)

// A hop is a request that a server of a redirect test got.
type hop struct {
	server, method, path, body string
	header                     http.Header
}

// chain starts two servers: of the first, /STATUS/to/WHERE redirects to WHERE, and all else is there.
func chain(t *testing.T) (h *Handler, one, other string, hops chan hop) {
	t.Helper()
	hops = make(chan hop, 50)
	answer := func(server string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			hops <- hop{server, r.Method, r.URL.Path, string(body), r.Header}
			if text, to, found := strings.Cut(strings.TrimPrefix(r.RequestURI, "/"), "/to/"); found {
				var status int
				_, _ = fmt.Sscan(text, &status)
				w.Header().Set("Location", to)
				w.WriteHeader(status)
			}
		}
	}
	h, one, _ = serve(t, answer("one"))
	_, other, _ = serve(t, answer("other"))
	return h, one, other, hops
}

func statusOf(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return http.StatusOK
	}
	var call *CallError
	require.ErrorAs(t, err, &call)
	return call.Status
}

func TestRedirectsAreFollowed(t *testing.T) {
	h, one, other, hops := chain(t)
	for _, c := range []struct {
		name, method, body string
		redirects, status  int
		to                 string
		want, calls        int
	}{
		{"a POST with a body, once more", "POST", "x", 1, 307, other + "/end", 200, 2},
		{"for good", "PUT", "x", 1, 308, other + "/end", 200, 2},
		{"relative", "POST", "x", 1, 307, "/end", 200, 2},
		{"a GET", "GET", "", 1, 302, other + "/end", 200, 2},
		{"a HEAD, seen elsewhere", "HEAD", "", 1, 303, other + "/end", 200, 2},
		{"a GET that moved", "GET", "", 1, 301, other + "/end", 200, 2},
		{"a POST would become a GET", "POST", "x", 5, 301, other + "/end", 301, 1},
		{"a found POST would become a GET", "POST", "x", 5, 302, other + "/end", 302, 1},
		{"see other", "PUT", "x", 5, 303, other + "/end", 303, 1},
		{"a POST without a body is one as well", "POST", "", 5, 303, other + "/end", 303, 1},
		{"a GET with a body would lose it", "GET", "x", 5, 302, other + "/end", 302, 1},
		{"none allowed", "POST", "x", 0, 307, other + "/end", 307, 1},
		{"one too many", "POST", "x", 1, 307, one + "/308/to/" + other + "/end", 308, 2},
		{"two", "POST", "x", 2, 307, one + "/308/to/" + other + "/end", 200, 3},
		{"in circles", "GET", "", 10, 302, one, 200, 2},
		{"nowhere", "GET", "", 5, 302, "", 302, 1},
		{"another scheme", "GET", "", 5, 302, "ftp://example.com/", 302, 1},
		{"not a URL", "GET", "", 5, 302, "http://[::1", 302, 1},
		{"not a redirect", "GET", "", 5, 300, other + "/end", 300, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := process(t.Context(), t, h, Request{
				Method: c.method, URL: fmt.Sprintf("%s/%d/to/%s", one, c.status, c.to), Body: []byte(c.body), Redirects: c.redirects,
			})
			require.Equal(t, c.want, statusOf(t, err))
			require.NotErrorIs(t, err, asynq.SkipRetry)
			require.Len(t, hops, c.calls)
			for range c.calls {
				got := <-hops
				require.Equal(t, c.method, got.method)
				require.Equal(t, c.body, got.body)
				require.Empty(t, got.header["Referer"])
			}
		})
	}
}

func TestRedirectsAreBounded(t *testing.T) {
	calls := 0
	h, base, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
	})
	require.Equal(t, 307, statusOf(t, process(t.Context(), t, h, Request{URL: base, Redirects: MaxRedirects})))
	require.Equal(t, 1+MaxRedirects, calls)
}

// A status that means success is not a redirect.
func TestSuccessIsNotRedirected(t *testing.T) {
	h, one, other, hops := chain(t)
	require.NoError(t, process(t.Context(), t, h, Request{URL: one + "/307/to/" + other, Redirects: 3, Success: []string{"307"}}))
	require.Len(t, hops, 1)
}

func TestRedirectsLeaveCredentialsBehind(t *testing.T) {
	h, one, other, hops := chain(t)
	headers := map[string]string{
		"authorization": "Bearer SECRET", "Cookie": "SECRET", "webhook-id": "msg_1", "webhook-timestamp": "1", "webhook-signature": "v1,SECRET",
		"X-Api-Key": "SECRET", "Content-Type": "application/json", "User-Agent": "mine", "Idempotency-Key": "k",
	}
	call := func(url string) (last hop) {
		t.Helper()
		require.NoError(t, process(t.Context(), t, h, Request{URL: url, Headers: headers, Body: []byte("x"), Redirects: 5}))
		for len(hops) > 0 {
			last = <-hops
		}
		return last
	}
	same := call(one + "/307/to/" + one + "/end")
	for name, value := range headers {
		require.Equal(t, value, same.header.Get(name), name)
	}
	for _, path := range []string{"/307/to/" + other + "/end", "/307/to/" + other + "/307/to/" + one + "/end"} {
		got := call(one + path)
		require.Equal(t, "/end", got.path)
		require.Equal(t, http.Header{
			"Content-Type": {"application/json"}, "User-Agent": {"mine"}, "Idempotency-Key": {"k"}, "Content-Length": {"1"},
		}, got.header, path)
	}

	headers = map[string]string{"X-A": "1"}
	withUser := strings.Replace(one, "http://", "http://user:SECRET@", 1)
	require.NotEmpty(t, call(withUser+"/307/to/"+one+"/end").header.Get("Authorization"), "it is the same place")
	require.Empty(t, call(withUser+"/307/to/"+other+"/end").header.Get("Authorization"))
}

func TestSameSite(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"https://a.example/x", "https://A.example:443/y", true},
		{"http://a.example", "https://a.example", true},
		{"http://a.example", "https://a.example:8443", false},
		{"http://a.example:8080", "https://a.example", false},
		{"https://a.example", "http://a.example", false},
		{"https://a.example", "https://www.a.example", false},
		{"https://a.example", "https://a.example:444", false},
		{"https://a.example", "https://b.example", false},
	} {
		a, err := url.Parse(c.a)
		require.NoError(t, err)
		b, err := url.Parse(c.b)
		require.NoError(t, err)
		require.Equal(t, c.want, sameSite(a, b), "%s to %s", c.a, c.b)
	}
	secure, err := url.Parse("https://a.example")
	require.NoError(t, err)
	_, ok := Request{Method: "GET"}.follow(302, "http://a.example", secure)
	require.False(t, ok, "from TLS to none")
}

func TestRedirectsAreGuarded(t *testing.T) {
	_, resolver := startStub(t, func(int64) []string { return []string{"127.0.0.3"} })
	h := NewHandler(Config{Resolver: resolver, AllowNetworks: prefixes("127.0.0.1/32")})
	defer h.CloseIdleConnections()
	_, again, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://rebound.example.com/SECRET", http.StatusTemporaryRedirect)
	})
	err := process(t.Context(), t, h, Request{URL: again + "/SECRET", Redirects: 1})
	requireBlocked(t, err, "127.0.0.0/8")
	require.ErrorContains(t, err, "POST to rebound.example.com: ")

	none := NewHandler(Config{AllowNetworks: prefixes("127.0.0.1/32")})
	defer none.CloseIdleConnections()
	_, metadata, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/SECRET", http.StatusPermanentRedirect)
	})
	requireBlocked(t, process(t.Context(), t, none, Request{URL: metadata, Redirects: 1}), "169.254.0.0/16")
}
