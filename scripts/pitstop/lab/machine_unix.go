//go:build unix

package lab

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes a file for this process alone, until the file is closed or the process ends. It reports whether the file was free.
func lock(f *os.File) (free bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
