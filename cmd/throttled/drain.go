package main

import (
	"github.com/spf13/cobra"

	"github.com/weirq/weir/throttle"
)

const drainHelp = `Drain has keys take no new jobs, until throttled resume. What waits goes on leaving; to
enqueue is refused meanwhile.
` + holdNames

const drainExamples = `  throttled drain old-provider
  throttled drain 'tenant-7-*'`

func newDrain(term terminal) *cobra.Command {
	return request{
		use: "drain NAME... [flags]", short: "Take no new jobs for keys, let the waiting ones leave", long: drainHelp, example: drainExamples,
		args: []string{"NAME..."}, check: names, changes: true, run: hold((*throttle.Queue).Drain, "draining"),
	}.command(term)
}
