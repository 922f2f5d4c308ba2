package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// group is a command that only holds others.
func group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// noSuchCommand refuses what is none of the commands that cmd holds.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), didYouMean(args[0], "", names))
}

// didYouMean asks about the names that are close to what was typed, or is empty. Cobra
// compares names of commands alone, so all are made commands.
func didYouMean(typed, prefix string, names []string) string {
	all := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, name := range names {
		all.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	near := all.SuggestionsFor(typed)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + prefix + strings.Join(near, " or "+prefix) + "?"
}
