//go:build !linux

package throttletest

import "syscall"

// tieToParent has no counterpart here: a server outlives a parent that is
// killed before it could stop it.
func tieToParent() *syscall.SysProcAttr { return nil }
