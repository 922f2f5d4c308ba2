package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
)

const help = "Throttled lets outbound jobs leave at the pace of their keys.\n\n" + exitCodes

const exitCodes = `Exit codes:
  0    done; of serve: stopped by a signal and drained
  1    failed while running; of serve also: not drained in time
  2    wrong usage or invalid configuration
  3    Redis unavailable at the start
  130  ended at once by a second signal`

// A terminal is what a command is run from.
type terminal struct {
	env      func(name string) string
	out, err io.Writer
}

// echo is how soon after the first signal another one is the same: timeout(1) and
// some supervisors signal a process and then its group, which it is in.
const echo = 50 * time.Millisecond

// run is the whole program. The first signal ends the context of the command, the
// second one run itself, whatever is still going on.
func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan int, 1)
	go func() { done <- execute(ctx, args, terminal{env: env, out: stdout, err: stderr}) }()
	for first := (time.Time{}); ; {
		select {
		case code := <-done:
			return code
		case s := <-signals:
			switch {
			case first.IsZero():
				first = time.Now()
				stop(fmt.Errorf("signal: %v", s))
			case time.Since(first) > echo:
				fmt.Fprintf(stderr, "throttled: ended at once by a second signal, %v\n", s)
				return exitForced
			}
		}
	}
}

// execute runs one command. Results go to stdout, all else to stderr.
func execute(ctx context.Context, args []string, term terminal) int {
	root := newRoot(term)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitClean
	}
	fmt.Fprintln(term.err, "throttled:", err)
	var f *failure
	if errors.As(err, &f) {
		return f.code
	}
	fmt.Fprintf(term.err, "See %s --help.\n", cmd.CommandPath()) // the command line could not be read
	return exitInvalid
}

func newRoot(term terminal) *cobra.Command {
	root := &cobra.Command{
		Use:               "throttled",
		Short:             "Let outbound jobs leave at the pace of their keys",
		Long:              help,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(term.out)
	root.SetErr(term.err)
	root.AddCommand(newServe(term))
	return root
}

// noArguments does not echo what it refuses: it may be a URL with a password that
// lost its flag.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return errors.New("there is an argument without a flag: quote values that contain spaces")
	}
	return nil
}
