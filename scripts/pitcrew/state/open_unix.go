//go:build unix

package state

import (
	"errors"
	"syscall"
)

// The flags of a file that is opened as it is.
const (
	noFollow = syscall.O_NOFOLLOW
	noWait   = syscall.O_NONBLOCK
)

// isLink reports whether a file was not opened because it is a link. Some systems have another number for it.
func isLink(err error) bool { return errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) }
