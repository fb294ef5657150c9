//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package checkpoint

import (
	"fmt"
	"os"
	"runtime"
)

// noFollow has no flag here: tryLock refuses every file, so no file is written.
const noFollow = 0

// tryLock refuses: without a lock two writers could both win.
func tryLock(*os.File) (bool, error) {
	return false, fmt.Errorf("no advisory file locks on %s: %w", runtime.GOOS, ErrInvalid)
}
