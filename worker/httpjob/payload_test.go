package httpjob

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseRefuses(t *testing.T) {
	const secret = "S3CRET"
	for _, c := range []struct{ name, payload, want string }{
		{"empty", "", "no first line"},
		{"no line end", `{"method":"POST","url":"http://a"}`, "no first line"},
		{"not JSON", "}{\n", "first line of the payload"},
		{"cut off", `{"method":"POST","url":"http://a/` + secret + "\n", "first line of the payload"},
		{"two values", `{"method":"POST","url":"http://a"}{}` + "\n", "more than one JSON value"},
		{"a field of a later version", `{"method":"POST","url":"http://a","sign":"x"}` + "\n", `"sign"`},
		{"null", "null\n", "url"},
		{"bad URL", `{"method":"POST","url":"` + secret + `"}` + "\n", "url"},
		{"bad header", `{"method":"POST","url":"http://a","headers":{"a b":"` + secret + `"}}` + "\n", "headers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.payload))
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), secret)
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"method":"POST","url":"http://a/b?c","headers":{"X":"y"}}` + "\nbody\n\x00"))
	f.Add([]byte("{}\n"))
	f.Add([]byte("\n"))
	f.Add([]byte(`{"url":"http://\u00e9"}` + "\n\xff"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := Parse(payload)
		if err != nil {
			return
		}
		again, err := r.Job("k")
		require.NoError(t, err, "what was read is valid")
		back, err := Parse(again.Payload)
		require.NoError(t, err)
		require.Equal(t, r.method(), back.Method)
		require.Equal(t, r.URL, back.URL)
		require.Equal(t, len(r.Headers), len(back.Headers))
		for name, value := range r.Headers {
			require.Equal(t, value, back.Headers[name])
		}
		require.Equal(t, r.Body, back.Body)
	})
}

func FuzzRequestRoundTrip(f *testing.F) {
	f.Add("POST", "https://u:p@example.com/x?y#z", "X-A", "b", []byte("\x00\xff\n\r{"))
	f.Add("", "http://a", "Content-Type", "text/plain; a=\"<&>\"", []byte(nil))
	f.Add("GET", "http://a/\u2028", "x", "\t é", []byte("\n"))
	f.Fuzz(func(t *testing.T, method, url, name, value string, body []byte) {
		r := Request{Method: method, URL: url, Headers: map[string]string{name: value}, Body: body}
		j, err := r.Job("k")
		if err != nil {
			return
		}
		back, err := Parse(j.Payload)
		require.NoError(t, err)
		require.Equal(t, r.method(), back.Method)
		require.Equal(t, r.URL, back.URL)
		require.Equal(t, r.Headers, back.Headers)
		require.Equal(t, string(r.Body), string(back.Body))
	})
}
