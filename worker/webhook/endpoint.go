package webhook

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/weirq/weir/throttle"
)

// An Endpoint is where events are delivered. URL, headers and secrets are as they were
// given; in JSON the secrets, the values of the headers and the password of the URL are masked, and
// printed or logged it shows no more than its id, key and host.
type Endpoint struct {
	ID  string `json:"id"`  // 1 to MaxEndpointID letters, digits, - and _; empty means a new one. It does not change
	URL string `json:"url"` // absolute, http or https
	// Secrets sign each call, all that are valid, the newest first; at most MaxSecrets, one of
	// them without an end. None means a new symmetric one.
	Secrets []EndpointSecret `json:"secrets"`
	// Headers are sent with each call. Not those of the connection, nor any webhook-*; a value
	// is at most MaxHeaderValue bytes, all names and values are 64 KiB with the URL.
	Headers map[string]string `json:"headers"`
	// Events are what is delivered: exact types, or "invoice.*" for all that begin with
	// "invoice.". None means all; at most MaxFilters.
	Events []string `json:"events"`
	// Key is what its jobs are throttled under; empty means "webhook:" and the ID. It has no
	// *, and does not change. Endpoints may share one: then disabling one pauses all.
	Key string `json:"key"`
	// Disabled endpoints get no events, and jobs that wait go on waiting. Disable and Enable
	// change it, nothing else does.
	Disabled       bool      `json:"disabled"`
	DisabledReason string    `json:"disabled_reason"` // shown to whoever asks; at most MaxReason bytes
	Created        time.Time `json:"created"`         // by the clock of Redis
	Updated        time.Time `json:"updated"`

	ownPolicy bool                       // SetPolicy set one
	more      map[string]json.RawMessage // what a later version stored
}

// An EndpointSecret is a secret and until when it signs, the zero time for no end.
type EndpointSecret struct {
	Secret Secret    `json:"secret"`
	Until  time.Time `json:"until,omitzero"`

	more map[string]json.RawMessage
}

// Bounds of an [Endpoint].
const (
	MaxEndpointID  = 63
	MaxSecrets     = 10
	MaxHeaderValue = 8 << 10 // bytes, what receivers commonly take
	MaxFilters     = 100
	MaxReason      = 512 // bytes
)

const keyPrefix = "webhook:"

// newEndpointID makes an id that sorts by its time of making.
func newEndpointID() string { return "ep_" + compactUUID() }

func compactUUID() string {
	return strings.ReplaceAll(uuid.Must(uuid.NewV7()).String(), "-", "")
}

func (e Endpoint) withDefaults() Endpoint {
	if e.ID == "" {
		e.ID = newEndpointID()
	}
	if e.Key == "" {
		e.Key = keyPrefix + e.ID
	}
	if len(e.Secrets) == 0 {
		e.Secrets = []EndpointSecret{{Secret: NewSecret()}}
	}
	return e
}

// clone shares nothing with e that could be changed.
func (e Endpoint) clone() Endpoint {
	e.Secrets = slices.Clone(e.Secrets)
	e.Headers = maps.Clone(e.Headers)
	e.Events = slices.Clone(e.Events)
	return e
}

// signing are the secrets that are valid now.
func (e Endpoint) signing(now time.Time) (secrets []Secret) {
	for _, s := range e.Secrets {
		if s.Until.IsZero() || now.Before(s.Until) {
			secrets = append(secrets, s.Secret)
		}
	}
	return secrets
}

// MarshalJSON masks the secrets, the values of the headers and the password of the URL.
func (e Endpoint) MarshalJSON() ([]byte, error) {
	type plain Endpoint // its secrets mask themselves
	p := plain(e.clone())
	for name := range p.Headers {
		p.Headers[name] = mask
	}
	if u, err := url.Parse(p.URL); err != nil {
		p.URL = mask
	} else if _, set := u.User.Password(); set {
		u.User = url.UserPassword(u.User.Username(), mask)
		p.URL = u.String()
	}
	return json.Marshal(p)
}

// Host is the only part of the URL that holds no secret, with the port if there is one.
func (e Endpoint) Host() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return mask
	}
	return u.Host
}

// String names the endpoint and its host.
func (e Endpoint) String() string { return fmt.Sprintf("endpoint %s at %s", e.ID, e.Host()) }

// GoString is the same as String.
func (e Endpoint) GoString() string { return e.String() }

// Format writes String for every verb.
func (e Endpoint) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.String()) }

// LogValue is the id, the key, the host and whether it is disabled.
func (e Endpoint) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", e.ID), slog.String("key", e.Key),
		slog.String("host", e.Host()), slog.Bool("disabled", e.Disabled))
}

var _ slog.LogValuer = Endpoint{}

// jobID names the job that delivers an event. Neither id has a slash, so no other pair
// has the same.
func (e Endpoint) jobID(event string) string { return event + "/" + e.ID }

// job is the delivery of an event.
func (e Endpoint) job(ev Event) throttle.Job {
	return throttle.Job{
		Key: e.Key, ID: e.jobID(ev.ID), Type: Type, Payload: ev.Data,
		Headers: map[string]string{
			endpointHeader: e.ID, eventHeader: ev.Type, timeHeader: ev.Time.UTC().Format(time.RFC3339Nano),
			IDHeader: ev.ID, contentTypeHeader: "application/json",
		},
	}
}
