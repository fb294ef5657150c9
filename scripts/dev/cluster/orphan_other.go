//go:build !linux

package cluster

import "os/exec"

// dieWithParent does nothing where the system has no such means.
func dieWithParent(*exec.Cmd) {}
