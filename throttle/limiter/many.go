package limiter

import (
	"context"
	"fmt"
)

// A Call is one of many questions.
type Call struct {
	Key  string
	Cost int64 // 0 stands for 1
}

// AllowMany asks as [Limiter.AllowN] does for many keys, in one pipeline; a key may come several
// times. Each call is decided on its own, in their order.
//
// Nothing is charged if a call is out of bounds; the error names it. After any other error the
// results of calls that were not decided have a Limit of 0, and do not allow.
func (l *Limiter) AllowMany(ctx context.Context, calls ...Call) ([]Result, error) {
	filled := make([]Call, len(calls))
	for i, c := range calls {
		if c.Cost == 0 {
			c.Cost = 1
		}
		if err := l.validate(c.Key, c.Cost); err != nil {
			return nil, fmt.Errorf("calls[%d]: %w", i, err)
		}
		filled[i] = c
	}
	if len(filled) == 0 {
		return nil, nil
	}
	results, err := l.space.askMany(ctx, filled)
	if err != nil {
		return results, fmt.Errorf("limiter %s: %d calls: %w", l.name, len(calls), err)
	}
	return results, nil
}
