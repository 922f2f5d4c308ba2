package main

import (
	"errors"

	"github.com/spf13/cobra"
)

const serveHelp = `Serve runs the scheduler, which releases jobs when the limits of their keys allow,
and the built-in worker, which makes their HTTP calls. Any number of processes may
share one Redis, each with both parts or with one of them.

A setting is taken from the first of these that has it:
  1. its flag
  2. the environment: WEIR_ and the flag's name, as in WEIR_SHUTDOWN_TIMEOUT for
     --shutdown-timeout; an empty variable counts as not set. For --allow-network it is
     WEIR_HTTP_ALLOW_NETWORKS, with commas between networks
  3. the config file, named by --config or WEIR_CONFIG; deploy/throttled.yaml in
     the source shows all of its fields
  4. its default
Policies come from the file. They are stored by processes that run the scheduler, in
place of those that a file brought before; a file without policies leaves those as
they are. Policies that throttled policy set has stored stay, and win over the file's.
They store max_waiting, the bound on what waits in all keys, in the same way.

SIGHUP has policies and max_waiting of the file read again, where the system has that
signal. A file in which anything is wrong is refused: its problems are logged, and all
stays as it was. What else has changed in the file is logged as needing a restart.

Without a Redis the process runs one inside of itself and prints its URL on
standard output. It keeps nothing once the process ends.

SIGTERM or SIGINT drains: /readyz turns 503, nothing new is taken on, running jobs
may end until the shutdown timeout, and the rest goes back into line with no
attempt counted. A second signal ends the process at once; jobs it was running are
run again once their leases are over.

Calls reach public addresses only, whatever their names resolve to: a call to any other
ends among the dead letters at once. --allow-network makes exceptions, for tests on one
machine and for services in one's own network.

--listen serves /metrics for Prometheus, /healthz (200 while the process lives) and
/readyz (503 while it drains or Redis does not answer).

Exit codes:
  0    stopped by a signal and drained
  1    failed while running, or not drained in time
  2    wrong usage or invalid configuration
  3    Redis unavailable at the start
  130  ended at once by a second signal`

const serveExamples = `  throttled serve
  throttled serve --redis redis://127.0.0.1:6379/0 --config throttled.yaml
  WEIR_REDIS=rediss://:password@redis.example.com throttled serve --worker-only --listen none`

func newServe(term terminal) *cobra.Command {
	var given flags
	cmd := &cobra.Command{
		Use:                   "serve [flags]",
		Short:                 "Run the scheduler and the built-in HTTP worker",
		Long:                  serveHelp,
		Example:               serveExamples,
		Args:                  noArguments,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if given.schedulerOnly && given.workerOnly {
				return errors.New("--scheduler-only and --worker-only exclude each other: give one of them, or none to run both parts")
			}
			hungUp, stop := hangups() // also while it starts: the signal would end the process
			defer stop()
			settle := func() (settings, error) { return given.settle(cmd.Flags(), term.env) }
			s, err := settle()
			if err != nil {
				return err
			}
			d := newDaemon(s, term)
			d.hangups, d.again = hungUp, settle
			return d.run(cmd.Context())
		},
	}
	given.register(cmd.Flags())
	return cmd
}
