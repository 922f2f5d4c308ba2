package throttletest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// stopPatience is how long a server may take to save and leave before it is
// killed.
const stopPatience = 5 * time.Second

// A process is one child, from its start to its end.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once it has ended
}

// startProcess runs a program in dir. What it writes goes to the end of out.
func startProcess(path string, args []string, dir string, out *os.File) (*process, error) {
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = tieToParent()

	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// On Linux the child is told of the end of the thread that started it, not
		// of the process. So this goroutine keeps that thread to itself until the
		// child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is told by its log
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return p, nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop asks the child to leave, waits for it, and kills it if it does not.
func (p *process) stop() error {
	err := p.signal(os.Interrupt, resumeSignal) // a paused child hears nothing before it resumes
	select {
	case <-p.done:
		return err
	case <-time.After(stopPatience):
		return errors.Join(err, p.kill())
	}
}

// kill ends the child at once and waits for its end.
func (p *process) kill() error {
	err := p.signal(os.Kill)
	if err == nil {
		<-p.done
	}
	return err
}

// signal sends to the child by its handle, which never reaches another process
// that was given the same number. A child that has ended is no error.
func (p *process) signal(signals ...os.Signal) error {
	for _, s := range signals {
		if s == nil {
			continue
		}
		if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("signal %v to process %d: %w", s, p.cmd.Process.Pid, err)
		}
	}
	return nil
}
