//go:build unix

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"pitstop.internal/scripts/pitcrew/crew"
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/peers"
	"pitstop.internal/scripts/pitcrew/state"
)

// seat takes the state directory: one crew has it at a time.
func (f *flags) seat(o *crew.Options) (func(), error) {
	own := f.state != "" || o.Directory != ""
	o.State = firstOf(f.state, folder(o))
	unlock, err := lockFolder(o.State)
	switch {
	case err == nil:
	case errors.As(err, new(busyError)) && own:
		return nil, exit{crew.CodeFailed, fmt.Errorf("another pitcrew supervises here already (%s)", o.State)}
	case own:
		return nil, exit{crew.CodeFailed, fmt.Errorf("state directory: %w (--state)", err)}
	default:
		// The same command twice, or nowhere to write: what does not outlive this crew goes into a folder that does not either.
		if o.State, err = os.MkdirTemp("", "pitcrew-"); err != nil {
			return nil, exit{crew.CodeFailed, fmt.Errorf("state directory: %w (--state)", err)}
		}
		return func() { _ = os.RemoveAll(o.State) }, nil //nolint:errcheck // a folder in the temporary one
	}
	if !own {
		// Without a lease the budget is the command's; a job that is over begins a new one.
		return func() { removeFolder(o.State); unlock() }, nil
	}
	if o.Directory == "" {
		return unlock, nil
	}
	// Two crews may have come to one directory by two names: a link, a mount, another state directory.
	held, err := hold(o.Directory, o.Machine, "crew")
	if errors.As(err, new(busyError)) {
		err = fmt.Errorf("another pitcrew supervises here already (%s)", o.Directory)
	}
	if err != nil {
		unlock()
		return nil, exit{crew.CodeFailed, err}
	}
	return func() {
		unlock()
		_ = held.Close() //nolint:errcheck // the process ends
	}, nil
}

// folder is the state directory where none is named: one for each checkpoint directory, or for each command in its folder.
func folder(o *crew.Options) string {
	key := o.Directory
	if path, ok := strings.CutPrefix(key, "file://"); ok {
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			key = "file://" + resolved
		}
	}
	if key == "" {
		cwd, err := os.Getwd()
		if err != nil {
			cwd = ""
		}
		key = strings.Join(append([]string{cwd}, o.Command...), "\x00")
	}
	key = fmt.Sprintf("%s|%d|%d", key, o.Machine.Slice, o.Machine.Worker)
	return filepath.Join(home(), fmt.Sprintf("%x", sha256.Sum256([]byte(key)))[:16])
}

// home is the folder of all state directories.
func home() string {
	if d := os.Getenv("STATE_DIRECTORY"); d != "" && !strings.Contains(d, ":") {
		return d // systemd's
	}
	if os.Geteuid() == 0 {
		return "/var/lib/pitcrew"
	}
	if d := os.Getenv("XDG_STATE_HOME"); d != "" {
		return filepath.Join(d, "pitcrew")
	}
	if d, err := os.UserHomeDir(); err == nil {
		return filepath.Join(d, ".local", "state", "pitcrew")
	}
	return filepath.Join(os.TempDir(), "pitcrew-state")
}

// busyError says that somebody else has a lock.
type busyError struct{ error }

func (busyError) Error() string {
	return "another pitcrew on this machine trains here; waiting until it ends"
}

// lockFolder makes a folder and takes its lock, which goes with the process.
func lockFolder(dir string) (unlock func(), err error) {
	for range 100 { // crews before this one may be taking it away, one after the other
		if err = os.MkdirAll(dir, 0o700); err != nil {
			continue
		}
		var f *os.File
		if err = refuseLink(dir); err == nil {
			f, err = lockIn(dir, "lock")
		}
		if err == nil {
			return func() { _ = f.Close() }, nil //nolint:errcheck // the process ends
		}
		if errors.As(err, new(busyError)) || errors.As(err, new(state.LinkError)) {
			break
		}
	}
	return nil, err
}

// refuseLink refuses a folder that is a link in a folder where others may write. Elsewhere a link belongs to its owner.
func refuseLink(dir string) error {
	dir = filepath.Clean(dir)
	info, err := os.Lstat(dir)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return err
	}
	above, err := os.Stat(filepath.Dir(dir))
	if err == nil && above.Mode().Perm()&0o022 != 0 {
		return state.LinkError{Path: dir}
	}
	return err
}

// removeFolder takes a locked folder away. The next crew may make it again at once, so it goes by another name first.
func removeFolder(dir string) {
	gone := fmt.Sprintf("%s.%d", dir, os.Getpid())
	if os.Rename(dir, gone) == nil {
		_ = os.RemoveAll(gone) //nolint:errcheck // nobody looks for it
	}
}

// lockIn takes the lock of a file in a folder.
func lockIn(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // the file stays open
	return lockFile(root, name)
}

// lockFile takes the lock of a file, which goes with the last process that holds it. It follows no link: where others
// may write, one leads to a file of their choice.
func lockFile(dir *os.Root, name string) (*os.File, error) {
	path := filepath.Join(dir.Name(), name)
	if info, err := dir.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, state.LinkError{Path: path}
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|os.O_CREATE|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = busyError{err}
		}
		return nil, errors.Join(err, f.Close())
	}
	mine, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if there, err := dir.Lstat(name); err != nil || !os.SameFile(mine, there) {
		return nil, errors.Join(fs.ErrNotExist, f.Close()) // it was removed before it was ours
	}
	return f, nil
}

// hold takes this worker's lock of a checkpoint directory. A folder is locked inside, so that it is one lock by whatever
// path it is reached; a bucket has one name, and its lock is the machine's.
func hold(dir string, m metadata.Machine, what string) (*os.File, error) {
	name := fmt.Sprintf("%s-%s-%d-%d", what, url.PathEscape(m.Host), m.Slice, m.Worker)
	path, ok := strings.CutPrefix(dir, "file://")
	if !ok {
		return lockName(fmt.Sprintf("%x", sha256.Sum256([]byte(dir+"|"+name)))[:24])
	}
	f, err := lockBeside(path, name+".lock")
	if err != nil {
		return nil, fmt.Errorf("lock of the checkpoint directory: %w", err)
	}
	return f, nil
}

// lockBeside takes a lock in the crews' folder of a checkpoint directory, which is no link.
func lockBeside(directory, name string) (*os.File, error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // the file stays open
	if err := root.Mkdir(peers.Folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if info, err := root.Lstat(peers.Folder); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, state.LinkError{Path: filepath.Join(directory, peers.Folder)}
	}
	folder, err := root.OpenRoot(peers.Folder)
	if err != nil {
		return nil, err
	}
	defer folder.Close() //nolint:errcheck // likewise
	return lockFile(folder, name)
}
