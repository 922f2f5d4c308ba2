package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
)

const deadReplayHelp = `Replay puts jobs that are dead, or done and kept, back into the lines of their keys, under
their ids and at the end. They leave under the limit like all others, their attempts
counted anew. With --all it is every dead letter of the key, or of all keys, that is there
now; those whose id is there again stay.`

const deadReplayExamples = `  throttled dead replay billing evt_7 evt_9
  throttled dead replay billing --all --by 'outage is over'
  throttled dead replay --all`

func newDeadReplay(term terminal) *cobra.Command {
	return revival{
		name: "replay", outcome: "replayed", short: "Put dead letters back into line",
		long: deadReplayHelp, example: deadReplayExamples,
		one: (*throttle.Queue).Replay, all: (*throttle.Queue).ReplayAll,
	}.command(term)
}

const deadDiscardHelp = `Discard throws jobs away for good that are dead, or done and kept. With --all it is every
dead letter of the key, or of all keys, that is there now, and it asks for --yes.`

const deadDiscardExamples = `  throttled dead discard billing evt_7
  throttled dead discard billing --all --yes --by ann`

func newDeadDiscard(term terminal) *cobra.Command {
	return revival{
		name: "discard", outcome: "discarded", short: "Throw dead letters away",
		long: deadDiscardHelp, example: deadDiscardExamples,
		one: (*throttle.Queue).Discard, all: (*throttle.Queue).DiscardAll, asks: true,
	}.command(term)
}

// A revival is what replay and discard have in common.
type revival struct {
	name, outcome, short, long, example string

	one  func(q *throttle.Queue, ctx context.Context, key, id string) error
	all  func(q *throttle.Queue, ctx context.Context, key string) (int64, error)
	asks bool // for --yes before all
}

func (r revival) command(term terminal) *cobra.Command {
	var all, yes bool
	return request{
		use:   r.name + " {KEY ID...|KEY --all|--all} [flags]",
		short: r.short, long: r.long, example: r.example, codes: someJobs,
		args: []string{"[KEY]", "[ID...]"}, changes: true,
		flags: func(set *pflag.FlagSet) {
			set.BoolVar(&all, "all", false, "all dead letters of the key, or of all keys if none is given")
			if r.asks {
				set.BoolVar(&yes, "yes", false, "really "+r.name+" all of them")
			}
		},
		check: func(args []string, set *pflag.FlagSet) error {
			switch {
			case all && len(args) > 1:
				return errors.New("--all and ids exclude each other: give one of them")
			case !all && len(args) == 0:
				return errors.New("KEY is missing, or --all for the dead letters of all keys")
			case !all && len(args) == 1:
				return errors.New("ID is missing, or --all for all dead letters of the key")
			case all && r.asks && !yes:
				return fmt.Errorf("%s --all throws dead letters away for good: give --yes if that is wanted", r.name)
			case len(args) == 0:
				return nil
			}
			return key(args, set)
		},
		run: func(ctx context.Context, c *conn, args []string) error {
			if !all {
				return each(r.outcome, r.one)(ctx, c, args)
			}
			name, of := "", throttle.AnyKey
			if len(args) == 1 {
				name, of = args[0], args[0]
			}
			n, err := r.all(c.queue, ctx, of)
			if err != nil {
				if n > 0 {
					return fmt.Errorf("%w; %s %s before", err, count(n, "dead letter"), r.outcome)
				}
				return err
			}
			return c.printRevived(name, r.outcome, n)
		},
	}.command(term)
}

func (c *conn) printRevived(key, outcome string, n int64) error {
	switch {
	case c.json:
		return c.object(struct {
			Key     string `json:"key,omitempty"` // none for all keys
			Outcome string `json:"outcome"`
			Jobs    int64  `json:"jobs"`
		}{key, outcome, n})
	case key == "":
		return c.line("%s %s", count(n, "dead letter"), outcome)
	}
	return c.line("%s: %s %s", shown(key), count(n, "dead letter"), outcome)
}
