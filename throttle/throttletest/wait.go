package throttletest

import (
	"context"
	"fmt"
	"time"
)

// patience bounds each start, restart and failover of the fixtures. They take
// well under five seconds; the rest is for machines that stall.
const patience = 30 * time.Second

// waitFor asks again and again until the answer is final or ctx ends. An answer
// that is not final says by its error what is still missing.
func waitFor(ctx context.Context, what string, ask func(context.Context) (final bool, err error)) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var missing error
	for {
		final, err := ask(ctx)
		switch {
		case final && err == nil:
			return nil
		case final:
			return fmt.Errorf("wait for %s: %w", what, err)
		case missing == nil || ctx.Err() == nil:
			missing = err // once ctx has ended, err tells of nothing else
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; last: %w", what, context.Cause(ctx), missing)
		case <-tick.C:
		}
	}
}
