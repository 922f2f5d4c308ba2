package main

import (
	"context"

	"github.com/spf13/cobra"
)

const policyGetHelp = `Get prints the policy that governs a key, whatever its name and source, with all
defaults filled in. throttled explain shows the others that could.`

const policyGetExamples = `  throttled policy get billing
  throttled policy get 'tenant-*' --json`

func newPolicyGet(term terminal) *cobra.Command {
	return request{
		use: "get KEY [flags]", short: "Show the policy that governs a key", long: policyGetHelp, example: policyGetExamples,
		args: []string{"KEY"}, check: key,
		run: func(ctx context.Context, c *conn, args []string) error { return c.printGoverning(ctx, args[0]) },
	}.command(term)
}
