package httpjob

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

// readOne reads a text of one line.
func readOne(d Defaults, line string) (throttle.Job, Request, error) {
	j, err := NewReader(strings.NewReader(line), d, 0).Next()
	if err != nil {
		return j, Request{}, err
	}
	r, err := Parse(j.Headers, j.Payload)
	return j, r, err
}

func TestLineWithEveryField(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	j, r, err := readOne(Defaults{Now: func() time.Time { return now }},
		`{"id":"evt_1","key":"a:{b} \u00e9","url":"https://example.com/x?y","method":"PUT","headers":{"X-A":"1","X-B":""},"body":"é\n\"\ud83d\ude00","cost":7,"delay":"1.5s"}`)
	require.NoError(t, err)
	require.Equal(t, "evt_1", j.ID)
	require.Equal(t, "a:{b} é", j.Key)
	require.Equal(t, Type, j.Type)
	require.EqualValues(t, 7, j.Cost)
	require.Equal(t, now.Add(1500*time.Millisecond), j.NotBefore)
	require.Equal(t, Request{
		Method: "PUT", URL: "https://example.com/x?y", Headers: map[string]string{"X-A": "1", "X-B": ""}, Body: []byte("é\n\"😀"),
	}, r)
}

func TestLineLeavesOutWhatDefaultsHave(t *testing.T) {
	policy := throttle.Policy{Limit: throttle.Limit{Rate: 5, Period: time.Second, Burst: 2}}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d := Defaults{
		Key: "k", URL: "http://a/b", Method: "PUT", Headers: map[string]string{"X-A": "default", "x-b": "default"},
		Cost: 3, Delay: time.Minute, Timeout: 9 * time.Second, Policy: &policy, Now: func() time.Time { return now },
	}
	for _, line := range []string{`{}`, `{"id":null,"key":null,"url":null,"method":null,"headers":null,"success":null,"redirects":null,"cost":null,"delay":null,"priority":null,"not_before":null,"ttl":null,"deadline":null,"dedupe":null,"body":null,"body_base64":null}`} {
		j, r, err := readOne(d, line)
		require.NoError(t, err)
		require.NotEmpty(t, j.ID)
		require.Equal(t, "k", j.Key)
		require.EqualValues(t, 3, j.Cost)
		require.Equal(t, now.Add(time.Minute), j.NotBefore)
		require.Equal(t, 9*time.Second, j.Timeout)
		require.Equal(t, policy, *j.Policy)
		require.Equal(t, Request{Method: "PUT", URL: "http://a/b", Headers: d.Headers}, r)
	}

	j, r, err := readOne(d, `{"key":"own","headers":{"x-a":"own"},"delay":"0s","cost":1,"method":"GET","payload":1}`)
	require.NoError(t, err)
	require.Equal(t, "own", j.Key)
	require.True(t, j.NotBefore.IsZero())
	require.EqualValues(t, 1, j.Cost)
	require.Equal(t, map[string]string{"x-a": "own", "x-b": "default", "Content-Type": "application/json"}, r.Headers)
	require.Equal(t, map[string]string{"X-A": "default", "x-b": "default"}, d.Headers, "the defaults stay as they are")
}

func TestLineWithSuccessAndRedirects(t *testing.T) {
	d := filled
	d.Success, d.Redirects = []string{"204"}, 2
	for line, want := range map[string]Request{
		`{}`: {Success: []string{"204"}, Redirects: 2},
		`{"success":"200-299,304","redirects":0}`: {Success: []string{"200-299", "304"}},
	} {
		_, r, err := readOne(d, line)
		require.NoError(t, err)
		require.Equal(t, want, Request{Success: r.Success, Redirects: r.Redirects})
	}
	for line, want := range map[string]string{
		`{"success":"2xx,no"}`: `line 1, column 12: success "no" is not allowed`,
		`{"success":true}`:     `line 1, column 12: success that is a boolean is not allowed`,
		`{"success":""}`:       `line 1, column 12: success "" is not allowed`,
		`{"redirects":11}`:     `line 1, column 14: redirects 11 is not allowed: want 0 to 10`,
		`{"redirects":"1"}`:    `line 1, column 14: redirects "1" is not allowed: want a whole number from 0 to 10`,
	} {
		_, _, err := readOne(d, line)
		require.ErrorContains(t, err, want)
	}
}

func TestLineWithMaxAttempts(t *testing.T) {
	d := filled
	d.MaxAttempts = 3
	for line, want := range map[string]int{`{}`: 3, `{"max_attempts":null}`: 3, `{"max_attempts":7}`: 7} {
		j, _, err := readOne(d, line)
		require.NoError(t, err)
		require.Equal(t, want, j.MaxAttempts)
	}
}

func TestLineWithLifetimesAndDedupe(t *testing.T) {
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	j, _, err := readOne(filled, `{"priority":9,"ttl":"90s","deadline":"2026-12-01T13:00:00+01:00","not_before":"2026-12-01T12:00:00.000Z",`+
		`"dedupe":{"name":"order-7","debounce":"5s","max_debounce":"1m","while_waiting":true,"replace":false,"window":null}}`)
	require.NoError(t, err)
	require.Equal(t, 9, j.Priority)
	require.Equal(t, 90*time.Second, j.TTL)
	require.True(t, noon.Equal(j.Deadline))
	require.True(t, noon.Equal(j.NotBefore))
	require.Equal(t, throttle.Dedupe{Name: "order-7", WhileWaiting: true, Debounce: 5 * time.Second, MaxDebounce: time.Minute}, *j.Dedupe)

	j, _, err = readOne(filled, `{"dedupe":{"content":true,"window":"1h"}}`)
	require.NoError(t, err)
	require.Equal(t, throttle.Dedupe{Content: true, Window: time.Hour}, *j.Dedupe)
}

// The defaults stand where a line is silent, and a line can do without each of them.
func TestLineAndTheDefaultsOfLifetimesAndDedupe(t *testing.T) {
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	d := filled
	d.Priority, d.TTL, d.Deadline, d.NotBefore, d.Dedupe = 5, time.Hour, noon, noon, &throttle.Dedupe{Name: "n", Replace: true}
	d.Now = func() time.Time { return noon }
	j, _, err := readOne(d, "{}")
	require.NoError(t, err)
	require.Equal(t, []any{5, time.Hour, noon, noon, *d.Dedupe}, []any{j.Priority, j.TTL, j.Deadline, j.NotBefore, *j.Dedupe})

	d.Deadline = noon.Add(time.Hour)
	j, _, err = readOne(d, `{"priority":0,"ttl":"0s","delay":"1m","dedupe":{"content":true}}`)
	require.NoError(t, err)
	require.Equal(t, []any{0, time.Duration(0), noon.Add(time.Minute)}, []any{j.Priority, j.TTL, j.NotBefore})
	require.Equal(t, throttle.Dedupe{Content: true}, *j.Dedupe, "nothing of the default's")
	require.Equal(t, &throttle.Dedupe{Name: "n", Replace: true}, d.Dedupe, "the defaults stay as they are")

	d.NotBefore, d.Delay = time.Time{}, time.Minute
	j, _, err = readOne(d, `{"not_before":"2026-12-01T12:00:07Z"}`)
	require.NoError(t, err)
	require.Equal(t, noon.Add(7*time.Second), j.NotBefore, "and not a minute later")
}

// What is past is at once, as far back as it may be: senders write times that were
// never set.
func TestLineWithAPastInstant(t *testing.T) {
	for _, text := range []string{"0001-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "2001-01-01T00:00:00Z"} {
		j, _, err := readOne(filled, `{"not_before":"`+text+`"}`)
		require.NoError(t, err, text)
		require.True(t, j.NotBefore.Before(time.Now()), text)
	}
}

func TestLineSendsAPayloadAsItStands(t *testing.T) {
	for _, payload := range []string{
		`{"a":1,"b":"é<&>"}`, `{ "b" : 1 ,  "a":[ 1.0,1e3 , -0 ] }`, `"\u003c\/\ud800"`, `12345678901234567890.10`, `null`, `[]`, `""`,
		"{\"line separator\":\"\u2028\"}", `{"a":1,"a":2}`, "{\t\"tab\":\ttrue\t}",
	} {
		_, r, err := readOne(Defaults{Key: "k", URL: "http://a"}, `{"x":0, "payload" :  `+payload+`  , "y":0}`)
		require.NoError(t, err, payload)
		require.Equal(t, payload, string(r.Body))
		require.Equal(t, map[string]string{"Content-Type": "application/json"}, r.Headers)
	}
	_, r, err := readOne(Defaults{Key: "k", URL: "http://a"}, `{"payload":{},"headers":{"content-type":"application/cloudevents+json"}}`)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"content-type": "application/cloudevents+json"}, r.Headers)
}

func TestLineTakesBinaryBodies(t *testing.T) {
	for encoded, body := range map[string]string{"AP8KDXs=": "\x00\xff\n\r{", "gA==": "\x80", "": ""} {
		_, r, err := readOne(Defaults{Key: "k", URL: "http://a"}, `{"body_base64":"`+encoded+`"}`)
		require.NoError(t, err)
		require.Equal(t, body, string(r.Body))
		require.Empty(t, r.Headers, "only a payload is known to be JSON")
	}
}

func TestLineRefuses(t *testing.T) {
	const secret = "S3CRET"
	full := Defaults{Key: "k", URL: "http://a"}
	for _, c := range []struct {
		name, line, want string
	}{
		{"no key", `{"url":"http://a"}`, `line 1: key "" is not allowed`},
		{"no URL", `{"key":"k"}`, "line 1: url of 0 bytes is not allowed"},
		{"empty key", `{"url":"http://a","key":""}`, `line 1, column 25: key "" is not allowed`},
		{"long key", `{"url":"http://a","key":"` + strings.Repeat("k", 513) + `"}`, "column 25: key 513 is not allowed: want at most 512 bytes"},
		{"key that is not UTF-8", "{\"key\":\"a\xffb\"}", "column 10: not valid UTF-8"},
		{"key with half a pair", `{"key":"\ud83d"}`, "column 8: key with half of a surrogate pair"},
		{"key with half a pair before text", `{"key":"\ude00\u0041"}`, "half of a surrogate pair"},
		{"numeric id", `{"id": 42}`, "column 8: id that is a number is not allowed: want a string"},
		{"empty id", `{"id":""}`, `id "" is not allowed`},
		{"id with a space", `{"key":"k","url":"http://a","id":"a b"}`, `column 34: id "a b" is not allowed`},
		{"bad URL", `{"key":"k","url":"/` + secret + `"}`, "column 18: url without http://"},
		{"bad method", `{"key":"k","url":"http://a","method":"A B"}`, `column 38: method "A B" is not allowed`},
		{"empty method", `{"key":"k","url":"http://a","method":""}`, `method "" is not allowed`},
		{"headers as a list", `{"headers":["` + secret + `"]}`, "column 12: headers that is an array is not allowed: want an object of strings"},
		{"header as a number", `{"headers":{"X-A":1}}`, `headers["X-A"] that is a number`},
		{"header null", `{"headers":{"X-A":null}}`, `headers["X-A"] that is null`},
		{"header name with a space", `{"key":"k","url":"http://a","headers":{"Bad Name":"` + secret + `"}}`, `column 39: headers "Bad Name"`},
		{"header value with a line break", `{"key":"k","url":"http://a","headers":{"X-A":"a\r\n` + secret + `"}}`, `column 39: headers["X-A"] of 9 bytes`},
		{"cost 0", `{"cost":0}`, "column 9: cost 0 is not allowed: want a whole number from 1 to 1000000000"},
		{"cost -1", `{"cost":-1}`, "cost -1 is not allowed"},
		{"cost 1.5", `{"cost":1.5}`, "cost 1.5 is not allowed"},
		{"cost too large", `{"key":"k","url":"http://a","cost":1000000001}`, "column 36: cost 1000000001 is not allowed"},
		{"cost beyond any integer", `{"cost":1e400}`, "cost 1e400 is not allowed"},
		{"cost as text", `{"cost":"1"}`, `cost "1" is not allowed`},
		{"no attempts", `{"max_attempts":0}`, "column 17: max_attempts 0 is not allowed: want a whole number from 1"},
		{"attempts as text", `{"max_attempts":"3"}`, `max_attempts "3" is not allowed`},
		{"ttl of the delay", `{"key":"k","url":"http://a","delay":"1h","ttl":"1m"}`, "column 48: ttl 1m0s is not allowed: want more than delay 1h0m0s: both count from the enqueue"},
		{"deadline before not_before", `{"key":"k","url":"http://a","not_before":"2026-12-01T06:00:00Z","deadline":"2026-12-01T05:00:00Z"}`,
			`column 76: deadline "2026-12-01T05:00:00Z" is not allowed: want none before not_before, 2026-12-01T06:00:00Z`},
		{"delay as a number", `{"delay":5}`, "delay that is a number is not allowed: want a string"},
		{"delay without unit", `{"delay":"5"}`, `delay "5" is not allowed: want a duration such as`},
		{"negative delay", `{"delay":"-1s"}`, `delay "-1s" is not allowed`},
		{"delay beyond 2262", `{"key":"k","url":"http://a","delay":"2562000h"}`, "not_before"},
		{"priority 10", `{"key":"k","url":"http://a","priority":10}`, "column 40: priority 10 is not allowed: want 0 to 9"},
		{"priority -1", `{"priority":-1}`, "priority -1 is not allowed: want 0 to 9"},
		{"priority 1.5", `{"priority":1.5}`, "column 13: priority 1.5 is not allowed: want a whole number from 0 to 9"},
		{"priority as text", `{"priority":"high"}`, `priority "high" is not allowed`},
		{"ttl as a number", `{"ttl":5}`, "ttl that is a number is not allowed: want a string"},
		{"ttl without unit", `{"ttl":"5"}`, `ttl "5" is not allowed: want a duration such as`},
		{"negative ttl", `{"ttl":"-1s"}`, `ttl "-1s" is not allowed`},
		{"ttl too short", `{"ttl":"1us"}`, "column 8: ttl 1µs is not allowed: want 1ms to 87600h0m0s"},
		{"ttl too long", `{"ttl":"87601h"}`, "ttl 87601h0m0s is not allowed: want 1ms to 87600h0m0s"},
		{"ttl beyond any duration", `{"ttl":"9999999999h"}`, `ttl "9999999999h" is not allowed`},
		{"deadline in words", `{"deadline":"tomorrow"}`, `column 13: deadline "tomorrow" is not allowed: want a time in RFC 3339, such as "2026-12-01T06:00:00Z"`},
		{"deadline as a number", `{"deadline":1796104800}`, "deadline that is a number is not allowed: want a string"},
		{"deadline beyond 2261", `{"deadline":"2262-01-01T00:00:00Z"}`, `column 13: deadline "2262-01-01T00:00:00Z" is not allowed: want a time in the years 1970 to 2261`},
		{"deadline before 1970", `{"deadline":"1969-12-31T23:59:59Z"}`, `deadline "1969-12-31T23:59:59Z" is not allowed`},
		{"not_before without a day", `{"not_before":"06:00"}`, `column 15: not_before "06:00" is not allowed: want a time in RFC 3339`},
		{"not_before beyond 2261", `{"not_before":"9999-12-31T23:59:59Z"}`, `column 15: not_before "9999-12-31T23:59:59Z" is not allowed`},
		{"not_before beside delay", `{"not_before":"2026-12-01T06:00:00Z","delay":"1s"}`, "column 15: not_before beside delay is not allowed: want only one of the two"},
		{"dedupe as text", `{"dedupe":"order-7"}`, "column 11: dedupe that is a string is not allowed: want an object of name, content, while_waiting"},
		{"dedupe with a field nobody knows", `{"dedupe":{"nam\u001b":"x"}}`, `column 11: dedupe with "nam\x1b" is not allowed: want an object of name, content`},
		{"dedupe with a name that is empty", `{"dedupe":{"name":""}}`, `column 11: dedupe.name "" is not allowed: want a text that is not empty`},
		{"dedupe with a name that has a space", `{"dedupe":{"name":"a b"}}`, `column 11: dedupe.name "a b" is not allowed: want 1 to 128 printable ASCII bytes`},
		{"dedupe with a number", `{"dedupe":{"content":1}}`, "dedupe.content that is a number is not allowed: want true or false"},
		{"dedupe with name and content", `{"dedupe":{"name":"a","content":true}}`, "column 11: dedupe.content true is not allowed: want false with a name"},
		{"dedupe with a window without unit", `{"dedupe":{"window":"5"}}`, `dedupe.window "5" is not allowed: want a duration`},
		{"dedupe with a window for what waits", `{"dedupe":{"window":"5s","while_waiting":true}}`, "dedupe.window 5s is not allowed: want none for a name"},
		{"dedupe with a debounce that replaces", `{"dedupe":{"debounce":"5s","replace":true}}`, "dedupe.replace true is not allowed: want false with debounce"},
		{"dedupe with a most below the debounce", `{"dedupe":{"debounce":"5s","max_debounce":"1s"}}`, "dedupe.max_debounce 1s is not allowed: want at least debounce"},
		{"body as an object", `{"body":{"a":"` + secret + `"}}`, "body that is an object is not allowed: want a string"},
		{"body with half a pair", `{"body":"` + secret + `\uD800"}`, "body with half of a surrogate pair"},
		{"bad base64", `{"body_base64":"` + secret + `!"}`, "body_base64 of 7 bytes is not allowed: want standard base64"},
		{"body and payload", `{"body":"","payload":1}`, "payload beside body is not allowed: want only one of"},
		{"body and body_base64", `{"body_base64":"","body":""}`, "body_base64 beside body"},
		{"body and a payload of null", `{"body":"","payload":null}`, "payload beside body"},
		{"array", `[{"key":"k"}]`, "line 1: not a JSON object"},
		{"null", `null`, "not a JSON object"},
		{"text", `"` + secret + `"`, "not a JSON object"},
		{"cut off", `{"key":"k","body":"` + secret, "column 25: not valid JSON: unexpected end"},
		{"two objects", `{"key":"k"} {}`, "column 13: not valid JSON: invalid character '{' after top-level value"},
		{"comma at the end", `{"key":"k",}`, "column 12: not valid JSON"},
		{"raw control character", "{\"key\":\"a\x01\"}", "column 10: not valid JSON"},
		{"nested without end", strings.Repeat("[", 20000), "not valid JSON"},
		{"header that is the URL", `{"key":"k","url":"http://a","headers":{":url":"http://` + secret + `"}}`, `column 39: headers ":url" is not allowed`},
		{"long URL", `{"key":"k","url":"http://a/` + strings.Repeat("u", throttle.MaxHeaderBytes) + `"}`, "column 18: url of 65560 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := full
			if strings.HasPrefix(c.name, "no ") {
				d = Defaults{}
			}
			_, _, err := readOne(d, c.line)
			var at *LineError
			require.ErrorAs(t, err, &at)
			require.Equal(t, 1, at.Line)
			require.ErrorIs(t, err, throttle.ErrInvalid)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), secret)
		})
	}
}

// The bound holds for the body alone, however the line spells it.
func TestLineBoundsTheBody(t *testing.T) {
	const most = throttle.DefaultMaxJobSize
	d := Defaults{Key: "k", URL: "http://a/" + strings.Repeat("u", 50_000), Headers: map[string]string{"X-A": strings.Repeat("h", 10_000)}}
	for field, spell := range map[string]func(size int) string{
		"body":        func(size int) string { return `"` + strings.Repeat("a", size) + `"` },
		"body_base64": func(size int) string { return `"` + base64.StdEncoding.EncodeToString(make([]byte, size)) + `"` },
		"payload":     func(size int) string { return `"` + strings.Repeat("a", size-2) + `"` },
	} {
		j, _, err := readOne(d, `{"`+field+`":`+spell(most)+`}`)
		require.NoError(t, err, field)
		require.Len(t, j.Payload, most)
		_, _, err = readOne(d, `{"`+field+`":`+spell(most+1)+`}`)
		require.EqualError(t, err, fmt.Sprintf("line 1, column %d: %s of 1048577 bytes is not allowed: want at most 1048576 bytes", len(field)+5, field))
	}
}

func TestDefaultMaxLineHoldsAnyJob(t *testing.T) {
	escaped := func(size int) string { return strings.Repeat(`\u0061`, size) }
	var headers []string
	for room := throttle.MaxHeaderBytes - len(":methodPOST:urlhttp://a"); room > 0; {
		name := fmt.Sprintf("X-%d", len(headers))
		size := min(maxHeaderValue, room-len(name))
		headers = append(headers, `"`+name+`":"`+escaped(size)+`"`)
		room -= len(name) + size
	}
	j, _, err := readOne(Defaults{Key: "k", URL: "http://a"},
		`{"headers":{`+strings.Join(headers, ",")+`},"body":"`+escaped(throttle.DefaultMaxJobSize)+`"}`)
	require.NoError(t, err)
	require.Len(t, j.Payload, throttle.DefaultMaxJobSize)
}

func TestLineTakesTheLastOfTwoEqualNames(t *testing.T) {
	j, _, err := readOne(Defaults{URL: "http://a"}, `{"key":"first","key":"last"}`)
	require.NoError(t, err)
	require.Equal(t, "last", j.Key)
	_, _, err = readOne(Defaults{URL: "http://a"}, `{"key":"first","key":""}`)
	require.ErrorContains(t, err, "column 22: ", "the place of the one that counts")
}

func TestDefaultsAreValidated(t *testing.T) {
	for _, c := range []struct {
		name     string
		defaults Defaults
		want     string
	}{
		{"none", Defaults{}, ""},
		{"all", Defaults{Key: "k", URL: "http://a", Method: "GET", Headers: map[string]string{"A": "b"}, Cost: 1, Delay: 1, Timeout: 1,
			Policy: &throttle.Policy{Limit: throttle.Limit{Rate: 1, Period: time.Second, Burst: 1}}}, ""},
		{"key", Defaults{Key: "\xff"}, "key"},
		{"URL", Defaults{URL: "example.com"}, "url"},
		{"method", Defaults{Method: "A B"}, "method"},
		{"headers", Defaults{Headers: map[string]string{"a b": ""}}, "headers"},
		{"cost", Defaults{Cost: -1}, "cost"},
		{"delay", Defaults{Delay: -1}, "delay"},
		{"delay and instant", Defaults{Delay: 1, NotBefore: time.Unix(0, 0)}, "not_before beside delay"},
		{"instant", Defaults{NotBefore: time.Unix(1e10, 0)}, "not_before"},
		{"priority", Defaults{Priority: 10}, "priority"},
		{"TTL", Defaults{TTL: -1}, "ttl"},
		{"deadline", Defaults{Deadline: time.Unix(-1, 0)}, "deadline"},
		{"dedupe", Defaults{Dedupe: &throttle.Dedupe{Name: " "}}, "dedupe.name"},
		{"timeout", Defaults{Timeout: -1}, "timeout"},
		{"policy", Defaults{Policy: &throttle.Policy{}}, "rate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.defaults.Validate()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, throttle.ErrInvalid)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestDefaultsMakeOneJob(t *testing.T) {
	d := Defaults{Key: "k", URL: "http://a", Cost: 2}
	j, err := d.Job("evt_1", []byte("\x00"))
	require.NoError(t, err)
	require.Equal(t, "evt_1", j.ID)
	require.EqualValues(t, 2, j.Cost)
	require.Equal(t, []byte{0}, j.Payload)
}

func TestDefaultsBoundTheBody(t *testing.T) {
	for _, d := range []Defaults{{}, {MaxJobSize: 10}} {
		most := d.maxSize()
		d.Key, d.URL, d.Headers = "k", "http://a/"+strings.Repeat("u", 1000), map[string]string{"A": "b"}
		j, err := d.Job("", make([]byte, most))
		require.NoError(t, err)
		require.Len(t, j.Payload, most)
		_, err = d.Job("", make([]byte, most+1))
		require.EqualError(t, err, fmt.Sprintf("body of %d bytes is not allowed: want at most %d bytes", most+1, most))
		require.ErrorIs(t, err, throttle.ErrInvalid)
	}
}
