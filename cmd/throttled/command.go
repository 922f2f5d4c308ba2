package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const help = `Throttled lets outbound jobs leave at the pace of their keys.

Serve is the daemon. The other commands look at the state in a Redis, or change it, and
take effect on all daemons that share it. A name that begins with - goes after --.

Exit codes:
  0    done
  1    failed while running; for policy diff, there are differences
  2    wrong usage or invalid input
  3    Redis unavailable
  130  interrupted`

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
	var f *failure
	if errors.As(err, &f) && f.err == nil {
		return f.code
	}
	fmt.Fprintln(term.err, "throttled:", legible(err.Error()))
	if f != nil {
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
		Args:              noSuchCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(term.out)
	root.SetErr(term.err)
	root.SetFlagErrorFunc(badFlag)
	root.AddCommand(newServe(term), newPolicy(term), newPause(term), newResume(term), newDrain(term), newCoolDown(term),
		newPurge(term), newMaxWaiting(term), newKeys(term), newJobs(term), newDead(term), newStats(term), newPlan(term), newExplain(term), newVerify(term), newHolds(term), newTrail(term), newEvents(term), newWebhooks(term), newRepair(term))
	return root
}

// badFlag says what is meant by a flag that could not be read.
func badFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return badValue(err)
	}
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	return fmt.Errorf("%w%s", err, didYouMean(unknown.GetSpecifiedName(), "--", flags))
}

// badValue says what a flag takes whose value could not be read.
func badValue(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	want := "true or false, or nothing"
	switch bad.GetFlag().Value.Type() {
	case "int", "int64":
		want = "a whole number"
	case "duration":
		want = "a duration with its unit, such as 10m or 1h30m"
	}
	return fmt.Errorf("--%s %q is not allowed: want %s", bad.GetFlag().Name, bad.GetValue(), want)
}

// noArguments echoes what it refuses if that is a plain word: what is not may be a URL
// with a password that lost its flag.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	which := "an argument (not shown, it may hold a password)"
	if plainWord.MatchString(args[0]) {
		which = fmt.Sprintf("an argument %q", args[0])
	}
	return fmt.Errorf("there is %s without a flag; if it is part of a value with spaces, quote the value", which)
}

var plainWord = regexp.MustCompile(`^[a-zA-Z0-9._*-]{1,40}$`)
