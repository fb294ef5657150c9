package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Files is the store behind file:// URIs. The generation of a file is its modification time in nanoseconds, which every
// write raises; writers exclude each other, across processes, by an advisory lock on a file in the same directory. A write
// without the lock (an editor, a copy) changes the generation like any other.
type Files struct {
	root string
	now  func() time.Time
	// Behind lets a write return once all readers see it. It reaches the disk right afterwards, which may take long: if the
	// machine crashes in between, the write may be lost.
	Behind bool
}

// NewFiles makes a store that reads and writes below root, an absolute path, and never leaves it, not through ".." and not
// through a symbolic link. Files get the time of now.
func NewFiles(root string, now func() time.Time) *Files {
	return &Files{root: filepath.Clean(root), now: now}
}

// Names that begin with hidden are the store's own and are never listed.
const (
	hidden   = ".pitstop-"
	lockName = hidden + "lock"
)

// resolve returns the path in a URI.
func (f *Files) resolve(op, uri string) (string, error) {
	p, err := trim(op, uri, "file")
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(p, "/") {
		return "", invalid(op, uri, "a file is named file:///path, with three slashes")
	}
	p = filepath.FromSlash(path.Clean(p))
	if !within(f.root, p) {
		return "", invalid(op, uri, "it is outside of %s", f.root)
	}
	if link := linkOfCrews(p); link != "" {
		return "", invalid(op, uri, "%s is a link, and crews follow no links, because another user may have made it: remove it", link)
	}
	if f.root == string(filepath.Separator) {
		return p, nil
	}
	root, err := filepath.EvalSymlinks(f.root)
	if err != nil {
		return "", fileFailed(op, uri, err)
	}
	// A path that does not exist yet is judged by its nearest parent.
	for q := p; ; q = filepath.Dir(q) {
		switch target, err := filepath.EvalSymlinks(q); {
		case err == nil && within(root, target):
			return p, nil
		case err == nil:
			return "", invalid(op, uri, "a symbolic link leads out of %s", f.root)
		case q == f.root || !absent(err):
			return "", fileFailed(op, uri, err)
		}
	}
}

// linkOfCrews is the first link on the way from the folder of the crews to a path in it; empty is none. If other users may
// write into a checkpoint directory, their link could lead a crew that runs as root to any file.
func linkOfCrews(p string) string {
	const separator = string(filepath.Separator)
	before, rest, found := strings.Cut(p+separator, separator+CrewName+separator)
	if !found {
		return ""
	}
	for _, name := range strings.Split(CrewName+separator+rest, separator) {
		before += separator + name
		info, err := os.Lstat(before) //nolint:gosec // resolve keeps it in the root
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return before
		}
	}
	return ""
}

func within(root, p string) bool {
	rel, err := filepath.Rel(root, p)
	return err == nil && filepath.IsLocal(rel)
}

// Get implements Store.
func (f *Files) Get(_ context.Context, uri string) (Object, error) {
	p, err := f.resolve("get", uri)
	if err != nil {
		return Object{}, err
	}
	// Size and generation are those of the open file, even if another file is renamed over it meanwhile.
	file, err := os.Open(p) //nolint:gosec // resolve keeps it in the root
	if err != nil {
		return Object{}, fileFailed("get", uri, err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	info, err := file.Stat()
	if err != nil {
		return Object{}, fileFailed("get", uri, err)
	}
	if info.IsDir() {
		return Object{}, &Error{Op: "get", URI: uri, Kind: ErrNotExist, Text: "it is a directory"}
	}
	if info.Size() > MaxBytes {
		return Object{}, invalid("get", uri, "%d bytes are more than the %d that are read", info.Size(), MaxBytes)
	}
	content, err := io.ReadAll(io.LimitReader(file, MaxBytes))
	if err != nil {
		return Object{}, fileFailed("get", uri, err)
	}
	return Object{Content: content, Generation: generationOf(info), Updated: info.ModTime().UTC()}, nil
}

// List implements Store.
func (f *Files) List(ctx context.Context, dir string, o ListOptions) (Listing, error) {
	p, err := f.resolve("list", dir)
	if err != nil {
		return Listing{}, err
	}
	w := walk{ctx: ctx, root: p, o: o, limit: o.limit()}
	switch err := w.dir(""); {
	case absent(err) && o.Prefix != "":
		return Listing{}, nil
	case err != nil:
		return Listing{}, fileFailed("list", dir, err)
	}
	return sorted(w.entries, w.limit, false), nil
}

// walk collects the names below a directory, one more than the limit, which shows that there are more.
type walk struct {
	ctx     context.Context //nolint:containedctx // one call, no longer
	root    string
	o       ListOptions
	limit   int
	entries []Entry
}

func (w *walk) dir(rel string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	names, err := os.ReadDir(filepath.Join(w.root, filepath.FromSlash(rel)))
	if err != nil {
		return err
	}
	for _, d := range names {
		name := path.Join(rel, d.Name())
		if strings.HasPrefix(d.Name(), hidden) || !w.wanted(name) {
			continue
		}
		switch e, err := w.entry(name, d); {
		case absent(err): // it vanished meanwhile, or is a dangling link
		case err != nil:
			return err
		case !w.o.Recursive:
			w.entries = append(w.entries, e)
		case !e.Dir:
			w.entries = append(w.entries, e)
		case d.IsDir():
			if err := w.dir(name); err != nil && !absent(err) {
				return err
			}
		}
		if len(w.entries) > w.limit {
			return nil
		}
	}
	return nil
}

// wanted reports whether name, or something below it, may have the prefix.
func (w *walk) wanted(name string) bool {
	return strings.HasPrefix(name, w.o.Prefix) || w.o.Recursive && strings.HasPrefix(w.o.Prefix, name+"/")
}

func (w *walk) entry(name string, d fs.DirEntry) (Entry, error) {
	info, err := d.Info()
	if err == nil && d.Type()&fs.ModeSymlink != 0 {
		info, err = os.Stat(filepath.Join(w.root, filepath.FromSlash(name)))
	}
	switch {
	case err != nil:
		return Entry{}, err
	case info.IsDir():
		return Entry{Name: name, Dir: true}, nil
	}
	return Entry{Name: name, Size: info.Size(), Updated: info.ModTime().UTC(), Generation: generationOf(info)}, nil
}

// Put implements Store. It makes missing directories, because a bucket needs none.
func (f *Files) Put(ctx context.Context, uri string, content []byte, generation int64) (int64, error) {
	p, err := f.resolve("put", uri)
	if err == nil {
		err = checkPut(uri, content, generation)
	}
	if err == nil && strings.HasSuffix(uri, "/") {
		err = invalid("put", uri, "it names a directory")
	}
	if err != nil {
		return 0, err
	}
	if generation == 0 {
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil { //nolint:gosec // others read it
			return 0, fileFailed("put", uri, err)
		}
	}
	written, err := f.replace(ctx, p, content, generation)
	if err != nil {
		if generation != 0 && absent(err) {
			err = ErrConflict // a bucket answers the same: the object has another generation
		}
		return 0, fileFailed("put", uri, err)
	}
	return written, nil
}

func (f *Files) replace(ctx context.Context, p string, content []byte, generation int64) (int64, error) {
	lock, err := f.lock(ctx, filepath.Dir(p))
	if err != nil {
		return 0, err
	}
	defer lock.Close() //nolint:errcheck // closing releases the lock in any case
	present, err := generationAt(p)
	if err != nil {
		return 0, err
	}
	if present != generation {
		return 0, ErrConflict
	}
	temp, err := os.CreateTemp(filepath.Dir(p), hidden+"*.tmp")
	if err != nil {
		return 0, err
	}
	mode := fs.FileMode(0o644) // the training may run as another user, and has to read it
	if filepath.Base(p) == CrewKeyName && filepath.Base(filepath.Dir(p)) == CrewName {
		mode = 0o600
	}
	written, err := f.fill(temp, content, mode, max(present, lastGiven(lock)), lock)
	if err == nil && !f.Behind {
		err = temp.Sync()
	}
	if cerr := temp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(temp.Name(), p) //nolint:gosec // resolve keeps it in the root
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(temp.Name())) //nolint:gosec // resolve keeps it in the root
	}
	if f.Behind {
		go func() {
			_ = syncFile(p)              //nolint:errcheck // it may have been replaced, and the kernel writes it out later
			_ = syncDir(filepath.Dir(p)) //nolint:errcheck // likewise
		}()
		return written, nil
	}
	return written, syncDir(filepath.Dir(p))
}

// fill writes the new content and gives it a generation above every earlier one in the directory, also of deleted files.
// Otherwise a writer that remembers a deleted file could mistake the new one for it.
func (f *Files) fill(temp *os.File, content []byte, mode fs.FileMode, after int64, lock *os.File) (int64, error) {
	if _, err := temp.Write(content); err != nil {
		return 0, err
	}
	if err := temp.Chmod(mode); err != nil {
		return 0, err
	}
	want := max(f.now().UnixNano(), after+1)
	// Some file systems round times down, to two seconds at worst; then fill takes the next time that they can store.
	for _, step := range []time.Duration{0, time.Microsecond, time.Millisecond, time.Second, 2 * time.Second} {
		t := time.Unix(0, want+int64(step))
		if err := os.Chtimes(temp.Name(), t, t); err != nil {
			return 0, err
		}
		info, err := temp.Stat()
		if err != nil {
			return 0, err
		}
		if written := generationOf(info); written > after {
			if err := give(lock, written); err != nil {
				return 0, err
			}
			return written, nil
		}
	}
	return 0, fmt.Errorf("the file system does not store the time of %s", temp.Name())
}

// lastGiven reads the highest generation given in the directory; 0 if it is unknown.
func lastGiven(lock *os.File) int64 {
	b := make([]byte, 32)
	n, err := lock.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0
	}
	last, err := strconv.ParseInt(strings.TrimSpace(string(b[:n])), 10, 64)
	if err != nil {
		return 0
	}
	return last
}

func give(lock *os.File, generation int64) error {
	_, err := lock.WriteAt(fmt.Appendf(nil, "%019d\n", generation), 0)
	return err
}

// Delete implements Store.
func (f *Files) Delete(ctx context.Context, uri string, generation int64) error {
	p, err := f.resolve("delete", uri)
	if err == nil {
		err = checkDelete(uri, generation)
	}
	if err != nil {
		return err
	}
	if err := f.remove(ctx, p, generation); err != nil {
		return fileFailed("delete", uri, err)
	}
	return nil
}

func (f *Files) remove(ctx context.Context, p string, generation int64) error {
	// A file that never existed needs no lock file.
	if present, err := generationAt(p); err != nil || present == 0 {
		return cmp.Or(err, fs.ErrNotExist)
	}
	lock, err := f.lock(ctx, filepath.Dir(p))
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // closing releases the lock in any case
	present, err := generationAt(p)
	switch {
	case err != nil:
		return err
	case present == 0:
		return fs.ErrNotExist
	case present != generation:
		return ErrConflict
	}
	if err := give(lock, max(present, lastGiven(lock))); err != nil {
		return err
	}
	if err := os.Remove(p); err != nil {
		return err
	}
	return syncDir(filepath.Dir(p))
}

// lock opens the lock file of a directory and waits for the lock. Closing the file releases it, and so does the death of the
// process.
func (f *Files) lock(ctx context.Context, dir string) (*os.File, error) {
	name := filepath.Join(dir, lockName)
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|noFollow, 0o644) //nolint:gosec // others read it
	if err != nil {
		info, lerr := os.Lstat(name) //nolint:gosec // resolve keeps it in the root
		if lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, fmt.Errorf("%s is a link, but must be a file that stores the numbers of writes: remove the link: %w", name, ErrInvalid)
		}
		return nil, err
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		ours, err := tryLock(file)
		if ours {
			return file, nil
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		// Another process holds it for the length of one write. This waits in real time, not on the caller's clock, which may
		// stand still in a simulation.
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil, errors.Join(ctx.Err(), file.Close())
		case <-t.C:
		}
	}
}

// generationAt is the generation of the file at a path, 0 if there is none.
func generationAt(p string) (int64, error) {
	info, err := os.Stat(p) //nolint:gosec // resolve keeps it in the root
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	case info.IsDir():
		return 0, fmt.Errorf("%s is a directory: %w", p, ErrInvalid)
	}
	return generationOf(info), nil
}

func generationOf(info fs.FileInfo) int64 { return max(1, info.ModTime().UnixNano()) }

func syncFile(p string) error {
	file, err := os.Open(p) //nolint:gosec // resolve keeps it in the root
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// syncDir makes a rename or a removal survive a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // resolve keeps it in the root
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // it was only read
	// Some network file systems cannot sync a directory.
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// absent reports whether the path does not exist. A file in the position of a parent directory counts too.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// fileFailed classifies an error of the file system.
func fileFailed(op, uri string, err error) *Error {
	e := &Error{Op: op, URI: uri, Kind: ErrTransient, Cause: err}
	var pathErr *fs.PathError
	switch {
	case errors.Is(err, ErrConflict):
		e.Kind, e.Cause = ErrConflict, nil
		return e
	case errors.Is(err, ErrInvalid):
		e.Kind = ErrInvalid
	case op == "put" && errors.Is(err, syscall.ENOTDIR):
		e.Kind = ErrInvalid // no directory can be made there while the file exists
	case absent(err):
		e.Kind, e.Cause = ErrNotExist, nil
		return e
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Kind = ErrPermission
	}
	if errors.As(err, &pathErr) {
		err = pathErr.Err // the URI already has the path
	}
	e.Text = oneLine(err.Error())
	return e
}
