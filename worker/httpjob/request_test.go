package httpjob

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func TestJobCarriesTheCall(t *testing.T) {
	r := Request{
		Method:  "PUT",
		URL:     "https://user:pass@example.com:8443/a b?q=<&>#part",
		Headers: map[string]string{"X-Note": "é <&> \u2028", "accept": "*/*"},
		Body:    []byte("\x00\xff\n\r{"),
		Timeout: 3 * time.Second,
		Success: []string{"2xx", "410-420"}, Redirects: 3,
	}
	j, err := r.Job("a:{b} c")
	require.NoError(t, err)
	require.Equal(t, "a:{b} c", j.Key)
	require.Equal(t, Type, j.Type)
	require.Equal(t, 3*time.Second, j.Timeout)
	require.Equal(t, r.Body, j.Payload)
	require.Equal(t, map[string]string{":method": "PUT", ":url": r.URL, ":success": "2xx,410-420", ":redirects": "3", "X-Note": "é <&> \u2028", "accept": "*/*"}, j.Headers)

	back, err := Parse(j.Headers, j.Payload)
	require.NoError(t, err)
	r.Timeout = 0 // travels in the job
	require.Equal(t, r, back)
}

func TestJobWithoutMethodIsPost(t *testing.T) {
	for _, body := range [][]byte{nil, {}, []byte("x")} {
		j, err := Request{URL: "http://example.com", Body: body}.Job("k")
		require.NoError(t, err)
		require.Equal(t, body, j.Payload)
		require.Equal(t, map[string]string{":method": "POST", ":url": "http://example.com"}, j.Headers)

		delete(j.Headers, ":method")
		r, err := Parse(j.Headers, j.Payload)
		require.NoError(t, err)
		require.Equal(t, "POST", r.method())
	}
}

func TestJobKeepsItsHeadersToItself(t *testing.T) {
	r := Request{URL: "http://example.com", Headers: map[string]string{"A": "b"}}
	j, err := r.Job("k")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"A": "b"}, r.Headers)
	back, err := Parse(j.Headers, nil)
	require.NoError(t, err)
	back.Headers["A"] = "c"
	require.Equal(t, "b", j.Headers["A"])
}

func TestJobRefusesBadKey(t *testing.T) {
	for _, key := range []string{"", strings.Repeat("k", 513), "\xff"} {
		_, err := Request{URL: "http://example.com"}.Job(key)
		require.ErrorIs(t, err, throttle.ErrInvalid)
		require.ErrorContains(t, err, "key")
	}
}

// sized is a call whose URL has a length, and all but its body another.
func sized(url, all int) Request {
	r := Request{Method: "PUT", URL: "http://example.com/", Headers: make(map[string]string)}
	r.URL += strings.Repeat("u", url-len(r.URL))
	for left := all - len(":methodPUT:url") - url; left > 0; {
		name := fmt.Sprintf("X-%d", len(r.Headers))
		value := strings.Repeat("h", min(maxHeaderValue, left-len(name)))
		r.Headers[name] = value
		left -= len(name) + len(value)
	}
	return r
}

func TestValidate(t *testing.T) {
	const secret = "S3CRET"
	with := func(change func(*Request)) Request {
		r := Request{URL: "https://example.com/" + secret + "?t=" + secret}
		change(&r)
		return r
	}
	url := func(s string) Request { return with(func(r *Request) { r.URL = s }) }
	method := func(s string) Request { return with(func(r *Request) { r.Method = s }) }
	header := func(name, value string) Request {
		return with(func(r *Request) { r.Headers = map[string]string{name: value} })
	}
	success := func(s ...string) Request { return with(func(r *Request) { r.Success = s }) }
	redirects := func(n int) Request { return with(func(r *Request) { r.Redirects = n }) }
	for _, c := range []struct {
		name    string
		request Request
		want    string // part of the error; empty means valid
	}{
		{"plain", url("http://example.com"), ""},
		{"port", url("http://example.com:8080/x"), ""},
		{"IPv6", url("http://[::1]:80/"), ""},
		{"IPv6 zone", url("http://[fe80::1%25eth0]/"), ""},
		{"user and password", url("https://u:p%40@example.com/"), ""},
		{"international host", url("https://bücher.example/"), ""},
		{"upper-case scheme", url("HTTPS://example.com/"), ""},
		{"path, query, fragment", url("https://example.com/a%2Fb/?x=1&y#z"), ""},

		{"no URL", url(""), "url of 0 bytes is not allowed: want an absolute URL"},
		{"relative", url("/" + secret), "url without http:// or https:// in front"},
		{"no scheme", url("example.com/" + secret), "without http:// or https:// in front"},
		{"user looks like a scheme", url(secret + ":x@example.com"), "without http:// or https:// in front"},
		{"other scheme", url("ftp://example.com/" + secret), "without http:// or https:// in front"},
		{"opaque", url("http:" + secret), "without a host"},
		{"no host", url("http:///" + secret), "without a host"},
		{"port alone", url("http://:80/" + secret), "without a host"},
		{"user alone", url("http://" + secret + "@/"), "without a host"},
		{"port 0", url("http://example.com:0/"), "port outside 1 to 65535"},
		{"port 65536", url("http://example.com:65536/"), "port outside 1 to 65535"},
		{"port in letters", url("http://u:" + secret + "@example.com:http/"), "cannot be read"},
		{"bad userinfo", url("http://u" + secret + " :x@example.com/"), "cannot be read"},
		{"bad escape", url("http://example.com/%zz" + secret), "cannot be read"},
		{"line break", url("http://example.com/\r\n" + secret), "cannot be read"},
		{"NUL", url("http://example.com/\x00" + secret), "cannot be read"},
		{"not UTF-8", url("http://example.com/\xff" + secret), "not valid UTF-8"},
		{"bad IPv6", url("http://[::1/" + secret), "cannot be read"},

		{"method of one's own", method("purge"), ""},
		{"GET", method("GET"), ""},
		{"method with a space", method("GE T"), `method "GE T" is not allowed`},
		{"method with a line break", method("GET\r\nX: y"), "method"},
		{"tunnel", method("connect"), "not CONNECT"},
		{"long method", method(strings.Repeat("é", 1000)), "…"},

		{"header", header("X-Token", secret), ""},
		{"empty header", header("X-Token", ""), ""},
		{"tab in a header", header("X-Token", "a\tb"), ""},
		{"name with a space", header("Bad Name", secret), `headers "Bad Name" is not allowed: want names of letters`},
		{"empty name", header("", secret), `headers "" is not allowed`},
		{"name with a colon", header("X:", secret), "headers"},
		{"the URL as a header", header(":url", "http://"+secret), `headers ":url" is not allowed`},
		{"value with a line break", header("X-Token", "a\r\nX-Other: "+secret), `headers["X-Token"] of 18 bytes is not allowed`},
		{"value with NUL", header("X-Token", "a\x00"+secret), `headers["X-Token"]`},
		{"value that is not UTF-8", header("X-Token", "\xff"+secret), `headers["X-Token"]`},
		{"Host", header("host", secret), `headers "host" is not allowed: want headers other than`},
		{"Transfer-Encoding", header("Transfer-encoding", "chunked"), "headers"},
		{"one name twice", with(func(r *Request) { r.Headers = map[string]string{"x-a": "1", "X-A": "2"} }), "each name once"},

		{"as large as can be", sized(60_000, throttle.MaxHeaderBytes), ""},
		{"long URL", sized(60_000, throttle.MaxHeaderBytes+1), "url of 65537 bytes with method and headers is not allowed: want at most 65536 bytes in all"},
		{"long headers", sized(1000, throttle.MaxHeaderBytes+1), "headers of 65537 bytes with URL and method is not allowed"},

		{"value of 16 KiB", header("X-A", strings.Repeat("h", 16<<10)), ""},
		{"value of 20 KiB", header("X-A", secret+strings.Repeat("h", 20<<10)), `headers["X-A"] of 20486 bytes is not allowed: want at most 16384 bytes`},
		{"Content-Length", header("content-length", "1"), "headers"},
		{"Connection", header("CONNECTION", "close"), "headers"},

		{"a status", success("204"), ""},
		{"a class", success("3xx"), ""},
		{"several", success("200-299,304", " 410 "), ""},
		{"no status", success(""), `success "" is not allowed: want statuses from 200 to 599, such as "2xx", "304" or "200-299"`},
		{"a word", success("200", "ok"), `success "ok" is not allowed`},
		{"a status that is none", success("600"), `success "600"`},
		{"not the answer yet", success("1xx"), `success "1xx"`},
		{"backwards", success("299-200"), `success "299-200"`},
		{"open range", success("200-"), `success "200-"`},
		{"signed", success("+200"), `success "+200"`},

		{"all redirects", redirects(10), ""},
		{"too many redirects", redirects(11), "redirects 11 is not allowed: want 0 to 10"},
		{"fewer than no redirects", redirects(-1), "redirects -1 is not allowed: want 0 to 10"},

		{"negative timeout", with(func(r *Request) { r.Timeout = -1 }), "timeout -1ns is not allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.request.Validate()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, throttle.ErrInvalid)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), secret)
			_, jobErr := c.request.Job("k")
			require.Equal(t, err, jobErr, "a job is refused for the same reason")
		})
	}
}

func TestJobAcceptsWhatTheQueueDoes(t *testing.T) {
	j, err := sized(1000, throttle.MaxHeaderBytes).Job("k")
	require.NoError(t, err)
	j.ID, j.Cost, j.Pool = "a", 1, throttle.DefaultPool
	require.NoError(t, j.Validate(0))
	j.Headers["X-0"] += "h"
	require.ErrorContains(t, j.Validate(0), "headers 65537 is not allowed", "both count the same")
}

func TestParseRefuses(t *testing.T) {
	const secret = "S3CRET"
	for _, c := range []struct {
		name    string
		headers map[string]string
		want    string
	}{
		{"no headers", nil, "http job: headers without :url is not allowed"},
		{"no URL", map[string]string{":method": "GET", "X-A": secret}, "headers without :url"},
		{"empty URL", map[string]string{":url": ""}, "http job: url of 0 bytes"},
		{"bad URL", map[string]string{":url": secret}, "url without http://"},
		{"bad method", map[string]string{":url": "http://a", ":method": "A B"}, `method "A B"`},
		{"bad header", map[string]string{":url": "http://a", "a b": secret}, `headers "a b"`},
		{"header of the connection", map[string]string{":url": "http://a", "Host": secret}, `headers "Host"`},
		{"a call of a later version", map[string]string{":url": "http://a", ":sign": secret, ":trailer": secret}, `headers ":sign" is not allowed: want no name with a colon in front but :method, :url, :success, :redirects; a later`},
		{"redirects in words", map[string]string{":url": "http://a", ":redirects": "all"}, "redirects -1 is not allowed"},
		{"success of nothing", map[string]string{":url": "http://a", ":success": ""}, `success ""`},
		{"of HTTP/2 alone", map[string]string{":path": "/" + secret, ":authority": "a"}, `headers ":authority" is not allowed`},
		{"upper case", map[string]string{":URL": "http://" + secret}, `headers ":URL" is not allowed`},
		{"colon alone", map[string]string{":url": "http://a", ":": secret}, `headers ":" is not allowed`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(c.headers, []byte(secret))
			require.ErrorIs(t, err, throttle.ErrInvalid)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), secret)
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(":method", "PUT", ":url", "http://a/b?c", []byte("body\n\x00"))
	f.Add(":url", "https://u:p@example.com", "X-A", "b", []byte(nil))
	f.Add(":url", "http://a", ":success", "200, 3xx,304-310", []byte("x"))
	f.Add(":url", "http://a", ":redirects", "07", []byte("x"))
	f.Add(":url", "http://a", ":sign", "", []byte{0x80})
	f.Add(":url", "http://\u00e9", "Host", "a", []byte("{}\n"))
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2 string, payload []byte) {
		r, err := Parse(map[string]string{name1: value1, name2: value2}, payload)
		if err != nil {
			require.ErrorIs(t, err, throttle.ErrInvalid)
			return
		}
		again, err := r.Job("k")
		require.NoError(t, err, "what was read is valid")
		back, err := Parse(again.Headers, again.Payload)
		require.NoError(t, err)
		r.Method = r.method()
		require.Equal(t, r, back)
	})
}

func FuzzRequestRoundTrip(f *testing.F) {
	f.Add("POST", "https://u:p@example.com/x?y#z", "X-A", "b", []byte("\x00\xff\n\r{"))
	f.Add("", "http://a", "Content-Type", "text/plain; a=\"<&>\"", []byte(nil))
	f.Add("GET", "http://a/\u2028", ":url", "http://b", []byte("\n"))
	f.Fuzz(func(t *testing.T, method, url, name, value string, body []byte) {
		r := Request{Method: method, URL: url, Headers: map[string]string{name: value}, Body: body}
		j, err := r.Job("k")
		if err != nil {
			return
		}
		require.Equal(t, body, j.Payload)
		back, err := Parse(j.Headers, j.Payload)
		require.NoError(t, err)
		r.Method = r.method()
		require.Equal(t, r, back)
	})
}
