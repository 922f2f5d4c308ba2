package throttletest_test

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle/throttletest"
)

func TestServerEndsWithAKilledParent(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	require.NoError(t, err)
	parent := exec.Command(program)
	parent.Env = append(os.Environ(), actAsParent+"="+t.TempDir())
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())

	addr, err := bufio.NewReader(out).ReadString('\n')
	addr = strings.TrimSpace(addr)
	if err == nil {
		conn, dialErr := net.Dial("tcp", addr)
		require.NoError(t, dialErr)
		_ = conn.Close()
	}
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait() // it was killed
	require.NoError(t, err, "the parent told where its server is")
	down(t, addr)
}

// The kernel ties a child to the thread that started it, so a launch from a
// goroutine whose thread ends must not take the server along.
func TestServerOutlivesTheThreadThatLaunchedIt(t *testing.T) {
	t.Parallel()
	var r *throttletest.Redis
	var err error
	launched := make(chan struct{})
	go func() {
		defer close(launched)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		r, err = throttletest.LaunchRedis(t.Context(), t.TempDir())
	}()
	<-launched
	require.NoError(t, err)
	defer r.Close()
	for range 50 {
		require.NoError(t, r.Client().Ping(t.Context()).Err())
	}
	require.NotZero(t, r.Pid())
}
