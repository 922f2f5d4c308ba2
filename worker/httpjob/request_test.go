package httpjob

import (
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
	}
	j, err := r.Job("a:{b} c")
	require.NoError(t, err)
	require.Equal(t, "a:{b} c", j.Key)
	require.Equal(t, Type, j.Type)
	require.Equal(t, 3*time.Second, j.Timeout)
	require.True(t, strings.HasSuffix(string(j.Payload), "\n\x00\xff\n\r{"), "the body follows as it is")

	back, err := Parse(j.Payload)
	require.NoError(t, err)
	r.Timeout = 0 // travels in the job
	require.Equal(t, r, back)
}

func TestJobWithoutMethodIsPost(t *testing.T) {
	for _, body := range [][]byte{nil, {}, []byte("x")} {
		j, err := Request{URL: "http://example.com", Body: body}.Job("k")
		require.NoError(t, err)
		r, err := Parse(j.Payload)
		require.NoError(t, err)
		require.Equal(t, "POST", r.Method)
		require.Equal(t, string(body), string(r.Body))
	}
}

func TestJobRefusesBadKey(t *testing.T) {
	for _, key := range []string{"", strings.Repeat("k", 513), "\xff"} {
		_, err := Request{URL: "http://example.com"}.Job(key)
		require.ErrorIs(t, err, throttle.ErrInvalid)
		require.ErrorContains(t, err, "key")
	}
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
		{"value with a line break", header("X-Token", "a\r\nX-Other: "+secret), `headers["X-Token"] of 18 bytes is not allowed`},
		{"value with NUL", header("X-Token", "a\x00"+secret), `headers["X-Token"]`},
		{"value that is not UTF-8", header("X-Token", "\xff"+secret), `headers["X-Token"]`},
		{"Host", header("host", secret), `headers "host" is not allowed: want headers other than`},
		{"Transfer-Encoding", header("Transfer-encoding", "chunked"), "headers"},
		{"one name twice", with(func(r *Request) { r.Headers = map[string]string{"x-a": "1", "X-A": "2"} }), "each name once"},

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
