package throttletest

import "syscall"

// tieToParent has the kernel kill the child when the thread that started it
// ends, so that no server outlives a test process that was killed. The group of
// its own keeps a Ctrl-C at the terminal from the server: the program that was
// meant may still need it in order to drain.
func tieToParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
