//go:build unix

package throttletest

import (
	"os"
	"syscall"
)

var (
	pauseSignal  os.Signal = syscall.SIGSTOP
	resumeSignal os.Signal = syscall.SIGCONT
)
