package main

import "github.com/spf13/cobra"

const deadHelp = `Dead letters are jobs that were given up: all their attempts failed, or one said that
another is no use. They are kept with what is in them, as many and for as long as the
config files of the daemons say in dead_letters.`

func newDead(term terminal) *cobra.Command {
	return group("dead", "Look at dead letters, replay or discard them", deadHelp,
		newDeadList(term), newJobGet(term, "dead"), newDeadReplay(term), newDeadDiscard(term))
}
