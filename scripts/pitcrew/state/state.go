// Package state keeps the data that has to outlive a process in small files of JSON. Its files are opened without following a
// link: where other users may write into the folder, a link there leads to a file of their choice.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
)

// ErrUnreadable says that a file held something else, and was put aside under the name that the error tells.
var ErrUnreadable = errors.New("it cannot be read")

const maxSize = 1 << 20

// Open opens a file for reading, and no link.
func Open(path string) (*os.File, error) {
	// A pipe, or anything else that is no file, does not keep the crew waiting.
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow|noWait, 0)
	if isLink(err) {
		return nil, LinkError{path}
	}
	return f, err
}

// LinkError says that there is a link where pitcrew follows none.
type LinkError struct{ Path string }

// Error implements error.
func (e LinkError) Error() string {
	return e.Path + " is a link, and pitcrew follows none there, because another user may have made it: remove it"
}

// Read reads a file; what cannot be read of it, after a crash of the machine, is put aside so that it is met once. The
// value is left as it was then.
func Read[T any](path string, into *T) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	var v T
	if err := json.NewDecoder(io.LimitReader(f, maxSize)).Decode(&v); err != nil {
		aside := path + ".unreadable"
		return errors.Join(fmt.Errorf("%s: %w: %w; it is now %s", path, ErrUnreadable, err, aside), os.Rename(path, aside))
	}
	*into = v
	return nil
}

// Write replaces a file at once: a reader sees the old one or the new one, and a crash of the process changes nothing.
func Write(path string, v any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return Replace(path, content)
}

// Replace is Write for other content than JSON.
func Replace(path string, content []byte) error {
	temp := path + "." + strconv.Itoa(os.Getpid())
	// It is a new file, so that nothing that stands there is followed or written to.
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return os.Rename(temp, path)
}

// Sync waits until a file that was written is on the disk, which may take long: then a crash of the machine changes
// nothing either.
func Sync(path string) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
