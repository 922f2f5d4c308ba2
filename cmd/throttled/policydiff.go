package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirq/weir/cmd/throttled/internal/config"
	"github.com/weirq/weir/throttle"
)

const policyDiffHelp = `Diff compares the policies of a config file with those that are stored, by name: of a
live one and one that came from a file, the live one counts. It prints each field that
differs, and nothing if none does. A policy that only one side has is shown whole.

The Redis is that of --redis or WEIR_REDIS, or else the one that the file names.`

const policyDiffExamples = `  throttled policy diff --config /etc/throttled.yaml
  throttled policy diff --config throttled.yaml --json || echo drift`

// A difference is a field that file and stored state do not agree on.
type difference struct {
	Key    string `json:"key"`
	Field  string `json:"field"` // "policy" where only one side has one
	File   string `json:"file"`  // empty for none
	Stored string `json:"stored"`
	Source string `json:"source,omitempty"` // of the stored policy
}

func newPolicyDiff(term terminal) *cobra.Command {
	var file config.Config
	return request{
		use: "diff --config FILE [flags]", short: "Compare the config file with the stored policies",
		long: policyDiffHelp, example: policyDiffExamples, codes: "\n  1    there are differences",
		flags: func(set *pflag.FlagSet) { set.String(configFlag, "", "config `FILE`; WEIR_CONFIG in the environment") },
		check: func(_ []string, set *pflag.FlagSet) (err error) {
			name, from, ok := source{set, term.env}.text(configFlag)
			switch {
			case !ok:
				return errors.New("--config is missing: give the file to compare")
			case name == "":
				return fmt.Errorf("%s is empty: give it the name of a file", from)
			}
			if file, err = config.Load(name); err == nil && file.Policies == nil {
				err = fmt.Errorf("%s has no policies: there is nothing to compare", name)
			}
			return err
		},
		redis: func() (url, from string) { return file.Redis, file.Origin("redis") },
		run: func(ctx context.Context, c *conn, _ []string) error {
			stored, err := c.queue.Policies(ctx)
			if err != nil {
				return err
			}
			found := differences(file.Policies, stored)
			if err := c.printDifferences(found); err != nil || len(found) == 0 {
				return err
			}
			return &failure{code: exitFailed} // what differs has been printed
		},
	}.command(term)
}

// differences are those of a file and what is stored, by key.
func differences(file []throttle.Policy, stored []throttle.StoredPolicy) (found []difference) {
	wanted, have := make(map[string]policyView), make(map[string]policyView)
	for _, p := range file {
		wanted[p.Key] = viewOf(p, "")
	}
	for _, p := range stored {
		if have[p.Key].Source != string(throttle.Live) {
			have[p.Key] = viewOf(p.Policy, p.Source)
		}
	}
	keys := make(map[string]bool)
	for _, side := range []map[string]policyView{wanted, have} {
		for key := range side {
			keys[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		want, inFile := wanted[key]
		is, isStored := have[key]
		switch {
		case !isStored:
			found = append(found, difference{Key: key, Field: "policy", File: want.summary()})
		case !inFile:
			found = append(found, difference{Key: key, Field: "policy", Stored: is.summary(), Source: is.Source})
		default:
			found = append(found, fieldDifferences(want, is)...)
		}
	}
	return found
}

func fieldDifferences(want, is policyView) (found []difference) {
	fields := is.fields()
	for i, f := range want.fields() {
		if f != fields[i] {
			found = append(found, difference{want.Key, f.name, orEmpty(f.text), orEmpty(fields[i].text), is.Source})
		}
	}
	return found
}

func orEmpty(text string) string {
	if text == none {
		return ""
	}
	return text
}

func orNone(text string) string {
	if text == "" {
		return none
	}
	return text
}

func (c *conn) printDifferences(found []difference) error {
	rows := [][]string{{"KEY", "FIELD", "FILE", "STORED", "SOURCE"}}
	for _, d := range found {
		if c.json {
			if err := c.object(d); err != nil {
				return err
			}
		}
		rows = append(rows, []string{shown(d.Key), d.Field, orNone(d.File), orNone(d.Stored), orNone(d.Source)})
	}
	if c.json || len(found) == 0 {
		return nil
	}
	return c.table(rows)
}
