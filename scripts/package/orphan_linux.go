package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent has a process that is not started yet end with this one, also if this one is killed.
func dieWithParent(c *exec.Cmd) {
	if c.SysProcAttr == nil {
		c.SysProcAttr = &syscall.SysProcAttr{}
	}
	c.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
