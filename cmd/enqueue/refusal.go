package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
)

// flagOf has the flags that fields of a job are given by.
var flagOf = map[string]string{
	"key": "--key", "url": "--url", "method": "--method", "headers": "--header", "body": "--data", "id": "--id", "cost": "--cost",
	"delay": "--delay", "not_before": "--delay", "timeout": "--timeout", "rate": "--rate", "burst": "--burst",
}

// asFlag makes a refusal name the flag, where it names a field that one gives.
func asFlag(err error) error {
	var refused *throttle.InvalidError
	if !errors.As(err, &refused) {
		return err
	}
	field := refused.Field
	if name, one := strings.CutPrefix(field, "headers["); one {
		field = "--header " + strings.TrimSuffix(name, "]")
	} else if flag := flagOf[field]; flag != "" {
		field = flag
	} else {
		return err
	}
	return &throttle.InvalidError{Field: field, Value: refused.Value, Allowed: refused.Allowed}
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
