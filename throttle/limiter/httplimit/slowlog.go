package httplimit

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// logEvery is the shortest time between two lines: an outage is one of every request.
const logEvery = time.Second

// A slowLog writes lines of one message. It leaves those out that come too fast, and counts them.
type slowLog struct {
	logger  *slog.Logger
	message string

	mu      sync.Mutex
	last    time.Time
	skipped int
}

func (l *slowLog) error(ctx context.Context, attrs ...any) {
	skipped, ok := l.turn(time.Now())
	if !ok {
		return
	}
	l.logger.ErrorContext(ctx, l.message, append(attrs, "skipped", skipped)...)
}

// turn tells whether a line may be written now, and how many were not since the last one.
func (l *slowLog) turn(now time.Time) (skipped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() && now.Sub(l.last) < logEvery {
		l.skipped++
		return 0, false
	}
	skipped, l.skipped, l.last = l.skipped, 0, now
	return skipped, true
}
