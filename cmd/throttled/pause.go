package main

import (
	"github.com/spf13/cobra"

	"github.com/weirq/weir/throttle"
)

const pauseHelp = `Pause keeps the jobs of keys where they are, until throttled resume. New ones are taken
and wait. Jobs that run, run on; those on their way to a worker go back into line.
` + holdNames

const pauseExamples = `  throttled pause billing crm
  throttled pause 'tenant-*' --by 'incident 12'`

func newPause(term terminal) *cobra.Command {
	return request{
		use: "pause NAME... [flags]", short: "Keep the jobs of keys waiting", long: pauseHelp, example: pauseExamples,
		args: []string{"NAME..."}, check: names, changes: true, run: hold((*throttle.Queue).Pause, "paused"),
	}.command(term)
}
