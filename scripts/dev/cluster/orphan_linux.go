package cluster

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes a program that is not started yet end with this process, also if this one is killed.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
