//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// hangups receives SIGHUP until stop. One that comes while another waits is the same.
func hangups() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}
