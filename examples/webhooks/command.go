package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
)

const help = `Webhooks delivers a backlog of events through the limits of their keys to a receiver
that measures what arrives: all in this one process, with a Redis that is embedded.

  key      limit
  billing  20/s burst 1
  crm      5/s burst 10
  search   50/s burst 5

Every 10th event of a key is answered 500 at first, so that its retry is seen obeying
the limit too. At the end there is a table, and a plot of the arrivals as PNG. Bounds:
never more than one job above burst + rate × time in any window of time, the rate
within 5 % while there is a backlog, nothing lost, duplicated or changed. The pace can
be off on a machine with no processor to spare: Redis, Weir and receiver share it.

Events are made up, or come from --file: one JSON object a line with id, key, and the
body as one of payload (any JSON, sent as it stands), body or body_base64.

Exit codes:
  0    all bounds kept
  1    a bound is broken; says which
  2    wrong usage or an invalid file
  3    no result: Redis is unavailable or not empty, or the plot cannot be written
  130  interrupted`

const examples = `  go run ./examples/webhooks
  go run ./examples/webhooks --for 5s --out /tmp/arrivals.png
  go run ./examples/webhooks --file events.ndjson --rate 10/s --burst 3
  go run ./examples/webhooks --redis redis://127.0.0.1:6379/9 --json`

// Exit codes, as the help text tells them.
const (
	exitKept        = 0
	exitBroken      = 1
	exitInvalid     = 2
	exitNoRun       = 3
	exitInterrupted = 130 // 128 + SIGINT, as shells report it
)

// A failure is an error that knows the exit code it ends with.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// An output is where the command writes: what it found to results, all else to
// notes.
type output struct{ results, notes io.Writer }

// run is the whole command.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := newCommand(output{results: stdout, notes: stderr})
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitKept
	}
	fmt.Fprintln(stderr, "webhooks:", err)
	var f *failure
	if errors.As(err, &f) {
		return f.code
	}
	fmt.Fprintln(stderr, "See webhooks --help.") // the flags could not be read
	return exitInvalid
}

func newCommand(out output) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:                   "webhooks [flags]",
		Short:                 "Deliver webhook events through the limits of their keys, and measure what arrives",
		Long:                  help,
		Example:               examples,
		Args:                  cobra.NoArgs,
		DisableFlagsInUseLine: true,
		SilenceErrors:         true,
		SilenceUsage:          true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check(cmd.Flags().Changed); err != nil {
				return err
			}
			return demonstrate(cmd.Context(), s, out)
		},
	}
	cmd.SetOut(out.results)
	cmd.SetErr(out.notes)
	s.register(cmd.Flags())
	cmd.MarkFlagsMutuallyExclusive("file", "for")
	return cmd
}

// settings are the flags as given.
type settings struct {
	redis string
	file  string
	rate  string
	burst int64
	last  time.Duration
	plot  string
	json  bool

	other throttle.Limit // rate and burst
}

// The made-up backlog may last this long.
const (
	shortestRun = time.Second
	longestRun  = 10 * time.Minute
)

func (s *settings) register(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&s.redis, "redis", "", "`URL` of an empty Redis to use instead of the embedded one")
	f.DurationVar(&s.last, "for", 25*time.Second, "`DURATION` of the deliveries, "+shortestRun.String()+" to "+longestRun.String())
	f.StringVar(&s.file, "file", "", "`FILE` with one event a line, instead of made-up ones")
	f.StringVar(&s.rate, "rate", "20/s", "`RATE` of keys in the file other than those above, such as 100/s or 1/500ms")
	f.Int64Var(&s.burst, "burst", 1, "`JOBS` that may leave at once from an idle key, with --rate")
	f.StringVar(&s.plot, "out", "webhooks.png", "`FILE` to write the plot to, as PNG")
	f.BoolVar(&s.json, "json", false, "print the figures as JSON")
}

// check refuses what would fail later, when the deliveries are over.
func (s *settings) check(changed func(flag string) bool) error {
	for _, flag := range []string{"rate", "burst"} {
		if changed(flag) && !changed("file") {
			return fmt.Errorf("--%s needs --file beside it: the made-up events have limits of their own", flag)
		}
	}
	if changed("file") && s.file == "" {
		return errors.New("--file is empty: give it a value, or leave it out")
	}
	if s.last < shortestRun || s.last > longestRun {
		return fmt.Errorf("--for %v is not allowed: want %v to %v", s.last, shortestRun, longestRun)
	}
	var err error
	if s.other, err = throttle.ParseLimit(s.rate, s.burst); err != nil {
		return err
	}
	folder := filepath.Dir(s.plot)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("--out %q is not allowed: want a file in a folder that exists", s.plot)
	}
	return nil
}

// destinations are the events to deliver.
func (s *settings) destinations(receiverURL string) ([]destination, error) {
	if s.file == "" {
		return madeUp(limits, s.last), nil
	}
	in, err := os.Open(s.file)
	if err != nil {
		return nil, fmt.Errorf("--file: %w", err)
	}
	defer func() { _ = in.Close() }()
	all, err := readEvents(in, receiverURL, limits, s.other)
	if err != nil {
		return nil, fmt.Errorf("--file %s: %w", s.file, err)
	}
	return all, nil
}
