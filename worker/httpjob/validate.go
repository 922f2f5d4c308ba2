package httpjob

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/weirq/weir/throttle"
)

// Validate tells the first part of the call that could never be sent, as a
// [*throttle.InvalidError]. The URL and the values of headers may be secret, so
// they are described and never repeated.
func (r Request) Validate() error {
	if err := validateMethod(r.method()); err != nil {
		return err
	}
	if err := validateURL(r.URL); err != nil {
		return err
	}
	if err := validateHeaders(r.Headers); err != nil {
		return err
	}
	if err := r.validateSuccess(); err != nil {
		return err
	}
	if err := r.validateRedirects(); err != nil {
		return err
	}
	if err := r.validateSize(); err != nil {
		return err
	}
	if r.Timeout < 0 {
		return invalid("timeout", r.Timeout, "a positive duration, or 0 for the worker's default")
	}
	return nil
}

// validateSize keeps all but the body within what the headers of a job may hold.
func (r Request) validateSize() error {
	n := 0
	for _, headers := range []map[string]string{r.own(), r.Headers} {
		for name, value := range headers {
			n += len(name) + len(value)
		}
	}
	if n <= throttle.MaxHeaderBytes {
		return nil
	}
	field, with := "headers", "URL and method"
	if len(r.URL) > n/2 {
		field, with = "url", "method and headers"
	}
	return invalid(field, described(fmt.Sprintf("of %d bytes with %s", n, with)), fmt.Sprintf("at most %d bytes in all", throttle.MaxHeaderBytes))
}

func validateMethod(m string) error {
	// CONNECT asks for a tunnel, which leaves no answer to judge.
	if !httpguts.ValidHeaderFieldName(m) || strings.EqualFold(m, http.MethodConnect) {
		return invalid("method", clip(m), "an HTTP method such as POST, and not CONNECT")
	}
	return nil
}

func validateURL(s string) error {
	refuse := func(given string) error {
		return invalid("url", described(given), "an absolute URL such as https://example.com/hook")
	}
	if s == "" {
		return refuse("of 0 bytes")
	}
	if !utf8.ValidString(s) {
		return refuse("that is not valid UTF-8")
	}
	u, err := url.Parse(s)
	if err != nil { // its text repeats the URL
		return refuse(fmt.Sprintf("of %d bytes that cannot be read", len(s)))
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return refuse("without http:// or https:// in front")
	}
	if u.Hostname() == "" {
		return refuse("without a host")
	}
	if host, err := httpguts.PunycodeHostPort(u.Host); err != nil || !httpguts.ValidHostHeader(host) {
		return refuse("with a host that cannot be a name or an address")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return refuse("with a port outside 1 to 65535")
		}
	}
	return nil
}

// framing are the headers that belong to the connection: net/http writes its
// own or drops them, so a value given for them would silently not be sent.
var framing = []string{"Connection", "Content-Length", "Host", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// maxHeaderValue is the longest value of a header, in bytes. Few servers take a longer one,
// and each attempt would only find that out.
const maxHeaderValue = 16 << 10

func validateHeaders(headers map[string]string) error {
	seen := make(map[string]bool, len(headers))
	for _, name := range slices.Sorted(maps.Keys(headers)) { // the same fault every time
		value := headers[name]
		if !httpguts.ValidHeaderFieldName(name) {
			return invalid("headers", clip(name), "names of letters, digits and any of !#$%&'*+-.^_`|~")
		}
		canonical := http.CanonicalHeaderKey(name)
		if slices.Contains(framing, canonical) {
			return invalid("headers", clip(name), "headers other than those of the connection itself: "+strings.Join(framing, ", "))
		}
		if seen[canonical] {
			return invalid("headers", clip(name), "each name once; upper and lower case are the same")
		}
		seen[canonical] = true
		if !utf8.ValidString(value) || !httpguts.ValidHeaderFieldValue(value) {
			return invalid(fmt.Sprintf("headers[%q]", clip(name)), described(fmt.Sprintf("of %d bytes", len(value))),
				"valid UTF-8 on one line, without control characters")
		}
		if len(value) > maxHeaderValue {
			return invalid(fmt.Sprintf("headers[%q]", clip(name)), described(fmt.Sprintf("of %d bytes", len(value))),
				fmt.Sprintf("at most %d bytes", maxHeaderValue))
		}
	}
	return nil
}

// described stands for a value that is secret or long: it reads as a clause and
// is not put in quotes.
type described string

func invalid(field string, value any, allowed string) error {
	return &throttle.InvalidError{Field: field, Value: value, Allowed: allowed}
}

// clip keeps a message readable when a value is absurdly long.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
