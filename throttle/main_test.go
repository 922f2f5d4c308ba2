package throttle_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Half of rapid's own number of runs, so that all tests take minutes and not a quarter of an hour with
	// the race detector; -rapid.checks asks for more.
	if err := flag.Set("rapid.checks", "50"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
