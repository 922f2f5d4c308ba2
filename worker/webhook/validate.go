package webhook

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker/httpjob"
)

// Validate tells the first field that is out of bounds, as a [*throttle.InvalidError] in
// which no secret, URL or value of a header is repeated. Fields that may be left out are taken at
// their defaults.
func (e Endpoint) Validate() error {
	e = e.withDefaults()
	if !isEndpointID(e.ID) {
		return invalid("id", clip(e.ID), allowedEndpointID)
	}
	if err := e.validateKey(); err != nil {
		return err
	}
	if err := e.validateSecrets(); err != nil {
		return err
	}
	if err := validateHeaders(e.Headers); err != nil {
		return err
	}
	if err := (httpjob.Request{URL: e.URL, Headers: e.Headers}).Validate(); err != nil {
		return err
	}
	if err := e.validateUnmasked(); err != nil {
		return err
	}
	if err := validateFilters(e.Events); err != nil {
		return err
	}
	return validateReason(e.DisabledReason)
}

const allowedEndpointID = "1 to 63 letters, digits, - and _"

func isEndpointID(id string) bool {
	return id != "" && len(id) <= MaxEndpointID && strings.IndexFunc(id, notInName) < 0
}

// notInName is what neither an id nor a part of an event's type has.
func notInName(r rune) bool {
	return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

func (e Endpoint) validateKey() error {
	if err := throttle.ValidateKey(e.Key); err != nil {
		return err
	}
	if strings.Contains(e.Key, "*") { // to pause it would pause others
		return invalid("key", clip(e.Key), "one without a *")
	}
	if strings.HasPrefix(e.Key, keyPrefix) && e.Key != keyPrefix+e.ID {
		return invalid("key", clip(e.Key), "%q or one that does not begin with %q: those are the endpoints' own",
			keyPrefix+e.ID, keyPrefix)
	}
	return nil
}

func (e Endpoint) validateSecrets() error {
	if n := len(e.Secrets); n > MaxSecrets {
		return invalid("secrets", n, "at most %d", MaxSecrets)
	}
	for i, s := range e.Secrets {
		if !s.Secret.CanSign() {
			return cannotSign(fmt.Sprintf("secrets[%d]", i), s.Secret)
		}
		for _, other := range e.Secrets[:i] {
			if other.Secret.Equal(s.Secret) {
				return invalid(fmt.Sprintf("secrets[%d]", i), describe("%s that is given before", s.Secret), "each secret once")
			}
		}
	}
	if !slices.ContainsFunc(e.Secrets, func(s EndpointSecret) bool { return s.Until.IsZero() }) {
		return invalid("secrets", describe("that all end"), "one without an end")
	}
	return nil
}

// validateHeaders checks what is not the same for every HTTP job.
func validateHeaders(headers map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if isSigned(name) {
			return invalid("headers", clip(name), "headers that do not begin with webhook-: those are written at each attempt")
		}
		if strings.HasPrefix(name, ":") {
			return invalid("headers", clip(name), "names without a colon")
		}
		if n := len(headers[name]); n > MaxHeaderValue {
			return invalid(fmt.Sprintf("headers[%q]", clip(name)), describe("of %d bytes", n), "at most %d bytes", MaxHeaderValue)
		}
	}
	return nil
}

func isSigned(header string) bool {
	const prefix = "webhook-"
	return len(header) >= len(prefix) && strings.EqualFold(header[:len(prefix)], prefix)
}

// validateUnmasked refuses what MarshalJSON wrote in place of a secret, so that an endpoint that is read,
// changed and written back as JSON does not lose them.
func (e Endpoint) validateUnmasked() error {
	const allowed = "the value itself: what was read is masked"
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		if e.Headers[name] == mask {
			return invalid(fmt.Sprintf("headers[%q]", clip(name)), mask, allowed)
		}
	}
	if u, err := url.Parse(e.URL); err == nil {
		if password, _ := u.User.Password(); password == mask {
			return invalid("url", describe("whose password is %s", mask), allowed)
		}
	}
	return nil
}

func validateReason(reason string) error {
	if len(reason) > MaxReason || !utf8.ValidString(reason) {
		return invalid("disabled_reason", describe("of %d bytes", len(reason)), "valid UTF-8 of at most %d bytes", MaxReason)
	}
	return nil
}
