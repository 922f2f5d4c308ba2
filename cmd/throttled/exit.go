package main

import "fmt"

// Exit codes. The help text documents them.
const (
	exitClean   = 0
	exitFailed  = 1
	exitInvalid = 2
	exitRedis   = 3
	exitForced  = 130 // 128 + SIGINT, as shells report it
)

// A failure is an error that knows the exit code it ends with.
type failure struct {
	code int
	err  error // nil if there is nothing more to say
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.err.Error()
}
func (f *failure) Unwrap() error { return f.err }

func fail(code int, format string, args ...any) error {
	return &failure{code: code, err: fmt.Errorf(format, args...)}
}
