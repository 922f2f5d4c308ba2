package webhook

import (
	"encoding/json"
	"fmt"
	"time"
)

// storedEndpoint is the record of an endpoint. All of its fields are always written: what
// is in a record beside them is a later version's, and stays.
type storedEndpoint struct {
	ID             string            `json:"id"`
	URL            string            `json:"url"`
	Secrets        []json.RawMessage `json:"secrets"` // of storedSecret
	Headers        map[string]string `json:"headers"`
	Events         []string          `json:"events"`
	Key            string            `json:"key"`
	OwnPolicy      bool              `json:"own_policy"`
	Disabled       bool              `json:"disabled"`
	DisabledReason string            `json:"disabled_reason"`
	Created        time.Time         `json:"created"`
	Updated        time.Time         `json:"updated"`
}

type storedSecret struct {
	Secret string    `json:"secret"`
	Until  time.Time `json:"until"` // the zero time for no end
}

func encodeEndpoint(e Endpoint) (string, error) {
	s := storedEndpoint{
		ID: e.ID, URL: e.URL, Headers: e.Headers, Events: e.Events, Key: e.Key, OwnPolicy: e.ownPolicy,
		Disabled: e.Disabled, DisabledReason: e.DisabledReason, Created: e.Created, Updated: e.Updated,
	}
	for _, secret := range e.Secrets {
		text, err := overlay(secret.more, storedSecret{secret.Secret.Text(), secret.Until})
		if err != nil {
			return "", err
		}
		s.Secrets = append(s.Secrets, text)
	}
	text, err := overlay(e.more, s)
	return string(text), err
}

// overlay is the object of v and what else there is.
func overlay(more map[string]json.RawMessage, v any) (json.RawMessage, error) {
	own, err := json.Marshal(v)
	if err != nil || len(more) == 0 {
		return own, err
	}
	all := make(map[string]json.RawMessage)
	for name, value := range more {
		all[name] = value
	}
	if err := json.Unmarshal(own, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// decodeEndpoint reads a record. The error names the endpoint and repeats nothing of the record, which
// holds secrets.
func decodeEndpoint(id, text string) (Endpoint, error) {
	damaged := fmt.Errorf("the record of endpoint %q is damaged: delete it, or write it anew", clip(id))
	var s storedEndpoint
	more, err := underlay([]byte(text), &s, storedEndpoint{})
	if err != nil || s.ID != id {
		return Endpoint{}, damaged
	}
	e := Endpoint{
		ID: s.ID, URL: s.URL, Headers: s.Headers, Events: s.Events, Key: s.Key, ownPolicy: s.OwnPolicy,
		Disabled: s.Disabled, DisabledReason: s.DisabledReason, Created: s.Created, Updated: s.Updated, more: more,
	}
	for _, raw := range s.Secrets {
		var stored storedSecret
		more, err := underlay(raw, &stored, storedSecret{})
		if err != nil {
			return Endpoint{}, damaged
		}
		secret, err := ParseSecret(stored.Secret)
		if err != nil {
			return Endpoint{}, damaged
		}
		e.Secrets = append(e.Secrets, EndpointSecret{Secret: secret, Until: stored.Until, more: more})
	}
	if e.Key == "" || len(e.Secrets) == 0 {
		return Endpoint{}, damaged
	}
	return e, nil
}

// underlay reads an object into v, and gives what it has beside the fields of an empty one.
func underlay(text []byte, v, empty any) (more map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(text, v); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &more); err != nil {
		return nil, err
	}
	own, err := json.Marshal(empty)
	if err != nil {
		return nil, err
	}
	var known map[string]json.RawMessage
	if err := json.Unmarshal(own, &known); err != nil {
		return nil, err
	}
	for name := range known {
		delete(more, name)
	}
	if len(more) == 0 {
		return nil, nil
	}
	return more, nil
}
