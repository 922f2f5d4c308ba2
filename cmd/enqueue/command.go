package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

const help = `Enqueue puts outbound HTTP calls into the line of their key. Each leaves when the
limit of its key allows: it waits, and is never refused for being over the limit.
Only where the policy of its key, or throttled max-waiting, bounds the jobs that
wait can there be no room for it.

One job comes from flags. Many come from --file: one JSON object a line with
  id, key, url, method, headers, cost, max_attempts, priority, delay or not_before,
  ttl, deadline, dedupe {name or content, while_waiting, window, replace, debounce,
  max_debounce}, and the body as one of
  body (text), body_base64 (any bytes) or payload (any JSON, sent as it stands).
A ttl counts from the enqueue, not from the end of a delay.
Flags fill what a line leaves out, dedupe as a whole; --id, --data and --data-file,
which are of one job, cannot go with --file. A bad line is reported with its number,
and the rest goes on. Other fields are ignored, with one warning for the file.

A job whose id is already there under its key is a duplicate and changes nothing,
so enqueuing the same file again is safe while its jobs have not ended, if its lines
have ids. Once a job has ended its id is free again. The flags --dedupe and below
have jobs known by more than that, and newer ones replace or delay the older.

Exit codes:
  0    all enqueued; duplicates, and what a key drops as its policy says, included
  1    some lines failed, the rest is enqueued; or the key takes no new jobs, or has
       no room for the job
  2    wrong usage or invalid input, nothing enqueued
  3    Redis unavailable; says how much was enqueued before
  130  interrupted; says how much was enqueued before`

const examples = `  enqueue --key billing --url https://example.com/hook --data '{"paid":true}' \
      --header 'Content-Type: application/json'
  enqueue --key search --url https://example.com/reindex --delay 90s --id nightly-1
  enqueue --key search --url https://example.com/reindex --dedupe reindex --debounce 10s
  enqueue --key sms --url https://example.com/code --priority 9 --ttl 2m
  enqueue --key acme --url https://example.com/hook --rate 5/s --burst 10 --data-file body.bin
  enqueue --file events.ndjson --url https://example.com/hook
  produce-events | enqueue --file - --json`

// run is the whole command. Results go to stdout, all else to stderr.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	cmd := newCommand(terminal{in: stdin, out: stdout, err: stderr})
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	_, _ = fmt.Fprintln(stderr, "enqueue:", err)
	var f *failure
	if errors.As(err, &f) {
		return f.code
	}
	_, _ = fmt.Fprintln(stderr, "See enqueue --help.") // the flags could not be read
	return exitInvalid
}

// A terminal is what the command talks through.
type terminal struct {
	in       io.Reader
	out, err io.Writer
}

func newCommand(term terminal) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:                   "enqueue --key KEY --url URL [flags]\n  enqueue --file FILE [flags]",
		Short:                 "Put outbound HTTP calls into the line of their key",
		Long:                  help,
		Example:               examples,
		DisableFlagsInUseLine: true,
		SilenceErrors:         true,
		SilenceUsage:          true,
		// Not echoed: a stray argument is most likely a value without its quotes.
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("there is an argument without a flag; if it is part of a value with spaces, quote the value")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.changed = cmd.Flags().Changed
			if err := s.exclusive(); err != nil {
				return err
			}
			if s.file != "" {
				return enqueueMany(cmd.Context(), s, term)
			}
			return enqueueOne(cmd.Context(), s, term)
		},
	}
	cmd.SetIn(term.in)
	cmd.SetOut(term.out)
	cmd.SetErr(term.err)
	s.register(cmd.Flags())
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return badValue(err) })
	return cmd
}
