package httpjob

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// An answer's body is read so that its connection can carry the next call, but
// no further than this: a larger or slower one costs its connection instead.
const (
	// MaxAnswerBody is how much of an answer's body is kept, in bytes.
	MaxAnswerBody = 64 << 10

	answerTime = time.Second
)

// An Answer is what came back for a call: the last one if redirects were followed.
// Header and body may hold secrets.
type Answer struct {
	Status int
	// Header has only Retry-After, Content-Type, X-Request-Id, Location without its user
	// and query, and what is said about limits: RateLimit, RateLimit-… and X-RateLimit-….
	Header http.Header
	Body   []byte // the first MaxAnswerBody bytes at most, of what came within a second
	Whole  bool   // Body is all there was
	Timing Timing
}

// Timing is how long the parts of a call took, with those of the redirects that it
// followed. A part that was not needed, as on a kept connection, is 0.
type Timing struct {
	DNS       time.Duration
	Connect   time.Duration
	TLS       time.Duration
	FirstByte time.Duration // from the start of the call to the answer's first byte
	Total     time.Duration // from the start of the call to the end of what was read
}

// A received is an answer as it is judged by.
type received struct {
	from   *url.URL
	status int
	header http.Header
	body   []byte
	whole  bool
}

// receive reads a bounded part of an answer, in bounded time. The outcome is the status, so a
// body that breaks off changes nothing. cancel ends the call.
func receive(resp *http.Response, keep bool, cancel context.CancelFunc) received {
	got := received{from: resp.Request.URL, status: resp.StatusCode, header: resp.Header}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return got // the body is the bare connection, whose reads no context ends
	}
	timer := time.AfterFunc(answerTime, cancel)
	defer timer.Stop()
	// One byte more, so that the end of a body of exactly the bound is seen.
	const most = MaxAnswerBody + 1
	if !keep {
		_, _ = io.CopyN(io.Discard, resp.Body, most)
		return got
	}
	body, err := readUpTo(most, resp.Body)
	got.whole = errors.Is(err, io.EOF) && len(body) < most
	got.body = body[:min(len(body), MaxAnswerBody)]
	return got
}

// readUpTo reads until there is an error or most bytes are read. It takes little more room than
// what is read.
func readUpTo(most int, r io.Reader) (b []byte, err error) {
	b = make([]byte, 0, 2<<10)
	for err == nil && len(b) < most {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(2*cap(b), most)), b...)
		}
		var n int
		n, err = r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
	}
	return b, err
}

func (r received) answer(t Timing) Answer {
	return Answer{Status: r.status, Header: ofInterest(r.header), Body: r.body, Whole: r.whole, Timing: t}
}

// ofInterest are the headers that an [Answer] has.
func ofInterest(all http.Header) http.Header {
	kept := make(http.Header)
	for name, values := range all {
		switch {
		case slices.Contains([]string{"Retry-After", "Content-Type", "X-Request-Id"}, name), aboutLimits(name):
			kept[name] = slices.Clone(values)
		case name == "Location":
			if l, ok := bare(values[0]); ok {
				kept.Set(name, l)
			}
		}
	}
	return kept
}

func aboutLimits(name string) bool {
	return strings.HasPrefix(name, "Ratelimit") || strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "X-Rate-Limit-")
}

// bare is a location without what in it is most often secret.
func bare(location string) (string, bool) {
	u, err := url.Parse(location)
	if err != nil {
		return "", false
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String(), true
}
