package main

import (
	"github.com/spf13/cobra"

	"github.com/weirq/weir/throttle"
)

const resumeHelp = `Resume ends pause, drain and cooldown under the same names: what a pattern holds, the
same pattern lets go. What waits then leaves at burst + rate × time, or along the ramp
of its policy. throttled explain tells whether something else still holds a key.
` + holdNames

const resumeExamples = `  throttled resume billing crm
  throttled resume 'tenant-*'`

func newResume(term terminal) *cobra.Command {
	return request{
		use: "resume NAME... [flags]", short: "End a pause, a drain or a cool-down", long: resumeHelp, example: resumeExamples,
		args: []string{"NAME..."}, check: names, changes: true, run: hold((*throttle.Queue).Resume, "resumed"),
	}.command(term)
}
