package throttletest_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirq/weir/throttle/throttletest"
)

// actAsParent makes this test program a mere parent of one server: it prints
// where the server is, and waits to be killed.
const actAsParent = "THROTTLETEST_ACT_AS_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(actAsParent) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	r, err := throttletest.LaunchRedis(context.Background(), os.Getenv(actAsParent))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(r.Addr())
	select {}
}
