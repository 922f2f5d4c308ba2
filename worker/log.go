package worker

import (
	"fmt"
	"log/slog"
	"os"
)

var levels = map[Outcome]slog.Level{
	Done: slog.LevelDebug, Dropped: slog.LevelInfo, Parked: slog.LevelDebug, Gone: slog.LevelDebug,
	Retry: slog.LevelInfo, Refused: slog.LevelInfo, Dead: slog.LevelWarn,
}

// asynqLogger passes asynq's own messages on.
type asynqLogger struct{ *slog.Logger }

func (l asynqLogger) Debug(args ...any) { l.Logger.Debug("asynq", "message", fmt.Sprint(args...)) }
func (l asynqLogger) Info(args ...any)  { l.Logger.Info("asynq", "message", fmt.Sprint(args...)) }
func (l asynqLogger) Warn(args ...any)  { l.Logger.Warn("asynq", "message", fmt.Sprint(args...)) }
func (l asynqLogger) Error(args ...any) { l.Logger.Error("asynq", "message", fmt.Sprint(args...)) }

// Fatal ends the process, as asynq expects.
func (l asynqLogger) Fatal(args ...any) {
	l.Error(args...)
	os.Exit(1)
}
