// Package checkpoint looks at the directory in which a training run saves itself. It reports whether a complete checkpoint
// is there, which lease holds, and which request the crew has. It reads and writes only small objects, never the
// checkpoints.
//
// A directory is named by a URI, gs://bucket/path or file:///path, taken literally: nothing in it is percent-decoded. Every
// write names the generation that it replaces, so of two writers one wins and the other learns that it lost. No write or
// delete is unconditional.
package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxBytes is the size of the largest object that is read or written; larger ones are refused with ErrInvalid.
const MaxBytes = 16 << 20

// MaxEntries is how many names a listing without a limit of its own returns.
const MaxEntries = 50_000

// Store keeps small objects in directories. Its errors are *Error. With errors.Is a caller finds out whether the object does
// not exist, another writer changed it, the call is not permitted, or it may work the next time. A Store is safe for
// concurrent use.
type Store interface {
	// Get reads an object as it is now, up to MaxBytes.
	Get(ctx context.Context, uri string) (Object, error)
	// List reads the names in a directory, all pages up to the limit. A directory without any trace is ErrNotExist. With a
	// prefix the listing is empty instead, because no name has the prefix.
	List(ctx context.Context, dir string, o ListOptions) (Listing, error)
	// Put writes an object and returns its new generation. The present generation must be the given one, and 0 means that no
	// object may exist. Otherwise Put does not write, and the error is ErrConflict. After ErrTransient the write may still have
	// taken effect.
	Put(ctx context.Context, uri string, content []byte, generation int64) (int64, error)
	// Delete deletes an object of that generation, or fails with ErrConflict. A missing object is ErrNotExist.
	Delete(ctx context.Context, uri string, generation int64) error
}

// Object is the content of an object at one moment.
type Object struct {
	Content []byte
	// Generation names this content: every write makes a higher one.
	Generation int64
	// Updated is when it was written; gs:// rounds it to the second.
	Updated time.Time
}

// ListOptions narrow a listing.
type ListOptions struct {
	// Prefix is the required beginning of the names; it has no slash, unless the listing is recursive.
	Prefix string
	// Limit is how many names are wanted; 0 means MaxEntries.
	Limit int
	// Recursive asks for the objects at every depth, with names relative to the directory, and no directories. It
	// follows no symbolic links.
	Recursive bool
}

func (o ListOptions) limit() int {
	if o.Limit <= 0 {
		return MaxEntries
	}
	return o.Limit
}

// Listing is the names in a directory, sorted.
type Listing struct {
	Entries []Entry
	// Truncated says that there are more names than the limit allowed. A bucket returns the first ones; a recursive
	// listing of a file system does not promise which.
	Truncated bool
}

// Entry is one name in a directory.
type Entry struct {
	// Name is relative to the directory and has no slash at its end.
	Name string
	// Dir says that it is a directory; the rest is then zero.
	Dir        bool
	Size       int64
	Updated    time.Time
	Generation int64
}

// The kinds of failure, for errors.Is. Every error of a Store is exactly one of them.
var (
	// ErrNotExist says that the object, the directory or the bucket does not exist.
	ErrNotExist = errors.New("does not exist")
	// ErrConflict says that the object does not have the named generation: read it again and decide again.
	ErrConflict = errors.New("was changed by somebody else")
	// ErrPermission says that the caller has no permission; a person must grant it.
	ErrPermission = errors.New("is not permitted")
	// ErrTransient says that the call may work the next time. Unknown errors are transient.
	ErrTransient = errors.New("does not work at the moment")
	// ErrInvalid says that the call can never work: a wrong URI, an object that is too large.
	ErrInvalid = errors.New("is not possible")
)

// Error is a failed call.
type Error struct {
	// Op is get, list, put, delete or locate.
	Op  string
	URI string
	// Kind is one of ErrNotExist, ErrConflict, ErrPermission, ErrTransient and ErrInvalid.
	Kind error
	// Text is the storage's message, in one line; it may be empty.
	Text string
	// Cause is the error underneath, if there is one.
	Cause error
}

// Error implements error, in one line.
func (e *Error) Error() string {
	s := e.Op + " " + e.URI + ": " + e.Kind.Error()
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

func invalid(op, uri, format string, args ...any) *Error {
	return &Error{Op: op, URI: uri, Kind: ErrInvalid, Text: fmt.Sprintf(format, args...)}
}

// Join is the URI of a name in a directory.
func Join(dir, name string) string { return strings.TrimRight(dir, "/") + "/" + name }

// Mux is a store for several schemes: the key is the part before "://". A function accepts only gs, because the directory
// comes from a node's metadata, which must not name the function's own files.
type Mux map[string]Store

func (m Mux) pick(op, uri string) (Store, error) {
	scheme, _, ok := strings.Cut(uri, "://")
	if s := m[scheme]; ok && s != nil {
		return s, nil
	}
	known := slices.Sorted(maps.Keys(m))
	for i := range known {
		known[i] += "://"
	}
	return nil, invalid(op, uri, "a URI has to begin with %s", strings.Join(known, " or "))
}

// Get implements Store.
func (m Mux) Get(ctx context.Context, uri string) (Object, error) {
	s, err := m.pick("get", uri)
	if err != nil {
		return Object{}, err
	}
	return s.Get(ctx, uri)
}

// List implements Store.
func (m Mux) List(ctx context.Context, dir string, o ListOptions) (Listing, error) {
	s, err := m.pick("list", dir)
	if err != nil {
		return Listing{}, err
	}
	return s.List(ctx, dir, o)
}

// Put implements Store.
func (m Mux) Put(ctx context.Context, uri string, content []byte, generation int64) (int64, error) {
	s, err := m.pick("put", uri)
	if err != nil {
		return 0, err
	}
	return s.Put(ctx, uri, content, generation)
}

// Delete implements Store.
func (m Mux) Delete(ctx context.Context, uri string, generation int64) error {
	s, err := m.pick("delete", uri)
	if err != nil {
		return err
	}
	return s.Delete(ctx, uri, generation)
}

// trim takes the scheme off a URI and refuses paths that no store accepts: a path that climbs, or one with impossible
// characters.
func trim(op, uri, scheme string) (string, error) {
	path, ok := strings.CutPrefix(uri, scheme+"://")
	if !ok {
		return "", invalid(op, uri, "the URI has to begin with %s://", scheme)
	}
	if !utf8.ValidString(path) || strings.ContainsAny(path, "\x00\r\n") {
		return "", invalid(op, fmt.Sprintf("%q", uri), "the name has characters that no storage takes")
	}
	for seg := range strings.SplitSeq(path, "/") {
		if seg == "." || seg == ".." {
			return "", invalid(op, uri, "the path climbs with %q", seg)
		}
	}
	return path, nil
}

// checkPut refuses an object that no store can write.
func checkPut(uri string, content []byte, generation int64) error {
	if len(content) > MaxBytes {
		return invalid("put", uri, "%d bytes are more than the limit of %d", len(content), MaxBytes)
	}
	if generation < 0 {
		return invalid("put", uri, "generation %d: name the one to replace, or 0 for none", generation)
	}
	return nil
}

func checkDelete(uri string, generation int64) error {
	if generation <= 0 {
		return invalid("delete", uri, "generation %d: name the one to delete", generation)
	}
	return nil
}

// sorted puts entries in order and applies the limit.
func sorted(entries []Entry, limit int, more bool) Listing {
	slices.SortFunc(entries, func(a, b Entry) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 || a.Dir == b.Dir {
			return c
		}
		if a.Dir {
			return 1
		}
		return -1
	})
	if len(entries) > limit {
		entries, more = entries[:limit], true
	}
	return Listing{Entries: entries, Truncated: more}
}
