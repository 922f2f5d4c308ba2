package httpjob

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// MaxRedirects bounds how many redirects a call may follow.
const MaxRedirects = 10

func (r Request) validateRedirects() error {
	if r.Redirects < 0 || r.Redirects > MaxRedirects {
		return invalid("redirects", r.Redirects, "0 to "+strconv.Itoa(MaxRedirects))
	}
	return nil
}

// follow is the call that an answer from the given place redirects to; ok is false
// where it does not, or not to a call that does the same.
func (r Request) follow(status int, location string, from *url.URL) (next Request, ok bool) {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		// What other clients make of these is a GET: it would seem done, with nothing delivered.
		if m := r.method(); len(r.Body) > 0 || m != http.MethodGet && m != http.MethodHead {
			return r, false
		}
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return r, false
	}
	to, err := from.Parse(location)
	if err != nil || location == "" || validateURL(to.String()) != nil {
		return r, false
	}
	if from.Scheme == "https" && to.Scheme == "http" { // the body would be for all to read
		return r, false
	}
	if sameSite(from, to) {
		if to.User == nil {
			to.User = from.User
		}
	} else {
		r.Headers = withoutCredentials(r.Headers)
	}
	r.URL = to.String()
	return r, true
}

// sameSite tells whether what is meant for one place is meant for the other: the host
// and the port are equal, or plain HTTP moved to TLS.
func sameSite(a, b *url.URL) bool {
	if !strings.EqualFold(a.Hostname(), b.Hostname()) {
		return false
	}
	return a.Scheme == b.Scheme && port(a) == port(b) || a.Scheme == "http" && port(a) == "80" && port(b) == "443"
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// harmless are the headers that another host may see. Of all others one cannot know
// which are credentials: besides Authorization, Cookie and the signatures of webhooks there
// are names that an API made up.
var harmless = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Content-Encoding", "Content-Language", "Content-Type",
	"Idempotency-Key", "Traceparent", "Tracestate", "User-Agent",
}

func withoutCredentials(headers map[string]string) map[string]string {
	kept := make(map[string]string, len(headers))
	for name, value := range headers {
		if slices.Contains(harmless, http.CanonicalHeaderKey(name)) {
			kept[name] = value
		}
	}
	return kept
}
