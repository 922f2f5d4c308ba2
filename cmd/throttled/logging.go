package main

import (
	"io"
	"log/slog"
)

func newLogger(w io.Writer, s settings) *slog.Logger {
	options := &slog.HandlerOptions{Level: s.logLevel}
	if s.logJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
