package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker/httpjob"
)

// flagOf has the flags that fields of a job are given by.
var flagOf = map[string]string{
	"key": "--key", "url": "--url", "method": "--method", "headers": "--header", "body": "--data", "id": "--id", "cost": "--cost",
	"timeout": "--timeout", "max_attempts": "--max-attempts", "rate": "--rate", "burst": "--burst", "priority": "--priority", "delay": "--delay",
	"ttl": "--ttl", "deadline": "--deadline", "dedupe.name": "--dedupe", "dedupe.content": "--dedupe-content",
	"dedupe.window": "--dedupe-window", "dedupe.replace": "--replace", "dedupe.debounce": "--debounce",
	"dedupe.max_debounce": "--max-debounce",
}

// asFlag makes a refusal name the flag, where it names a field that one gives.
func (s *settings) asFlag(err error) error {
	var refused *throttle.InvalidError
	if !errors.As(err, &refused) {
		return err
	}
	field := refused.Field
	if name, one := strings.CutPrefix(field, "headers["); one {
		field = "--header " + strings.TrimSuffix(name, "]")
	} else if field == "not_before" {
		field = "--not-before"
		if s.changed("delay") {
			field = "--delay"
		}
	} else if flag := flagOf[field]; flag != "" {
		field = flag
	} else {
		return err
	}
	return &throttle.InvalidError{Field: field, Value: refused.Value, Allowed: refused.Allowed}
}

// withoutKey says where a key can be given, if that is what a line lacks.
func withoutKey(bad *httpjob.LineError) error {
	var refused *throttle.InvalidError
	if errors.As(bad.Err, &refused) && refused.Field == "key" && refused.Value == "" && bad.Column == 0 {
		return fmt.Errorf("line %d: key is missing: give it in the line, or with --key", bad.Line)
	}
	return bad
}

// badValue says what a flag takes whose value could not be read.
func badValue(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	want := "a whole number"
	switch bad.GetFlag().Value.Type() {
	case "duration":
		want = "a duration such as 1.5s"
	case "bool":
		want = "true or false, or nothing"
	}
	return fmt.Errorf("--%s %q is not allowed: want %s", bad.GetFlag().Name, bad.GetValue(), want)
}

// notConnected is the refusal of a Redis URL. Where nothing of it can be shown, it
// names what gave it instead.
func notConnected(err error, from string) error {
	var refused *throttle.InvalidError
	if errors.As(err, &refused) && refused.Value == "…" {
		return fmt.Errorf("%s is not a Redis URL: want %s", from, refused.Allowed)
	}
	return err
}

// refusals are the keys that took no jobs, or not all.
type refusals struct {
	draining map[string]bool
	full     map[string]*throttle.FullError // by key; "" for the bound on all keys
}

// refusalsIn finds them in the error of EnqueueMany, which joins them with others.
func refusalsIn(err error) refusals {
	r := refusals{draining: make(map[string]bool), full: make(map[string]*throttle.FullError)}
	r.collect(err)
	return r
}

func (r refusals) collect(err error) {
	switch e := err.(type) { //nolint:errorlint // this is the walk through the tree
	case *throttle.DrainingError:
		for _, key := range e.Keys {
			r.draining[key] = true
		}
	case *throttle.FullError:
		left := *e
		r.full[e.Key] = &left
	case interface{ Unwrap() []error }:
		for _, below := range e.Unwrap() {
			r.collect(below)
		}
	case interface{ Unwrap() error }:
		r.collect(e.Unwrap())
	}
}

// of is why a job of a key that has no receipt was refused, nil if it was not: a key has
// no room for as many as its error says, and what else has no receipt was lost.
func (r refusals) of(key string) error {
	if r.draining[key] {
		return &throttle.DrainingError{Keys: []string{key}}
	}
	for _, whose := range []string{key, ""} {
		if e := r.full[whose]; e != nil && e.Refused > 0 {
			e.Refused--
			one := *e
			one.Refused = 1
			if whose == "" {
				return fmt.Errorf("%w; throttled max-waiting sets that bound", &one)
			}
			return &one
		}
	}
	return nil
}
