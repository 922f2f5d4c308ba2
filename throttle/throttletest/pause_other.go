//go:build !unix

package throttletest

import "os"

// A nil signal is one that the system does not have.
var pauseSignal, resumeSignal os.Signal
