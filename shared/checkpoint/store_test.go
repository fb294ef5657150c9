package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"

	"pitstop.internal/shared/checkpoint/buckettest"
)

// start is where every test's clock stands at first: a whole second, which every storage keeps.
var start = time.Date(2026, time.November, 12, 2, 14, 7, 0, time.UTC)

// tooLarge is one byte more than is read or written.
var tooLarge = make([]byte, MaxBytes+1)

// clockwork is a clock that its test sets.
type clockwork struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clockwork { return &clockwork{t: start} }

func (c *clockwork) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clockwork) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = t
}

// rig is one kind of storage under test.
type rig struct {
	store Store
	// dir is an empty directory that exists as far as directories exist.
	dir   string
	clock *clockwork
	// seed writes an object as somebody else would, at a time.
	seed func(t testing.TB, name string, content []byte, at time.Time)
	// server is the simulated bucket, if it is one.
	server *buckettest.Server
}

func client(rt http.RoundTripper) option.ClientOption {
	return option.WithHTTPClient(&http.Client{Transport: rt})
}

func bucketRig(tb testing.TB, opts func(*buckettest.Server) []option.ClientOption) rig {
	tb.Helper()
	c := newClock()
	server := buckettest.New(c.now, "ckpt")
	return rig{
		store: NewBucket(opts(server)...), dir: "gs://ckpt/llama-8b", clock: c, server: server,
		seed: func(_ testing.TB, name string, content []byte, at time.Time) {
			before := c.now()
			c.set(at)
			server.Put("ckpt", "llama-8b/"+name, content)
			c.set(before)
		},
	}
}

func overTransport(tb testing.TB) rig {
	tb.Helper()
	return bucketRig(tb, func(s *buckettest.Server) []option.ClientOption {
		return []option.ClientOption{client(s.Transport())}
	})
}

func overSocket(tb testing.TB) rig {
	tb.Helper()
	return bucketRig(tb, func(s *buckettest.Server) []option.ClientOption {
		srv := httptest.NewServer(s)
		tb.Cleanup(srv.Close)
		return []option.ClientOption{option.WithEndpoint(srv.URL + "/storage/v1/"), option.WithoutAuthentication()}
	})
}

func overFiles(tb testing.TB) rig {
	tb.Helper()
	return overFilesOf(tb, false)
}

func overFilesBehind(tb testing.TB) rig {
	tb.Helper()
	return overFilesOf(tb, true)
}

func overFilesOf(tb testing.TB, behind bool) rig {
	tb.Helper()
	c := newClock()
	root := tb.TempDir()
	files := NewFiles(root, c.now)
	files.Behind = behind
	return rig{
		store: files, dir: "file://" + root, clock: c,
		seed: func(tb testing.TB, name string, content []byte, at time.Time) {
			tb.Helper()
			p := filepath.Join(root, name)
			must(tb, os.MkdirAll(filepath.Dir(p), 0o750))
			must(tb, os.WriteFile(p, content, 0o600))
			must(tb, os.Chtimes(p, at, at))
		},
	}
}

// kinds are the storages that have to behave alike.
var kinds = []struct {
	name string
	make func(testing.TB) rig
}{{"gs over a transport", overTransport}, {"gs over a socket", overSocket}, {"file", overFiles}, {"file, behind", overFilesBehind}}

func each(t *testing.T, f func(t *testing.T, r rig)) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			f(t, k.make(t))
		})
	}
}

func mustPut(tb testing.TB, s Store, uri, content string, generation int64) int64 {
	tb.Helper()
	g, err := s.Put(tb.Context(), uri, []byte(content), generation)
	must(tb, err)
	return g
}

// wantErr checks that an error is of one kind, of no other, and in one line.
func wantErr(tb testing.TB, err, kind error) {
	tb.Helper()
	for _, k := range []error{ErrNotExist, ErrConflict, ErrPermission, ErrTransient, ErrInvalid} {
		if errors.Is(err, k) != (k == kind) { //nolint:errorlint // the very sentinel
			tb.Errorf("error %v: is %q: %v, want the kind %q", err, k, errors.Is(err, k), kind)
		}
	}
	if err != nil && strings.ContainsAny(err.Error(), "\n\r") {
		tb.Errorf("error has several lines: %q", err)
	}
}

func TestStoreWritesOnceByGeneration(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		t.Helper()
		ctx, uri := t.Context(), Join(r.dir, "deep/er/object.json")
		_, err := r.store.Get(ctx, uri)
		wantErr(t, err, ErrNotExist)
		_, err = r.store.Put(ctx, uri, []byte("x"), 7)
		wantErr(t, err, ErrConflict)
		wantErr(t, r.store.Delete(ctx, uri, 7), ErrNotExist)

		first := mustPut(t, r.store, uri, "one", 0)
		got, err := r.store.Get(ctx, uri)
		must(t, err)
		if diff := cmp.Diff(Object{Content: []byte("one"), Generation: first, Updated: start}, got); diff != "" {
			t.Errorf("the object differs (-want +got):\n%s", diff)
		}
		_, err = r.store.Put(ctx, uri, []byte("two"), 0)
		wantErr(t, err, ErrConflict)
		_, err = r.store.Put(ctx, uri, []byte("two"), first+1)
		wantErr(t, err, ErrConflict)
		// The clock stands still, and a generation is new all the same.
		second := mustPut(t, r.store, uri, "two", first)
		if second <= first {
			t.Errorf("generation %d after %d", second, first)
		}
		_, err = r.store.Put(ctx, uri, []byte("three"), first)
		wantErr(t, err, ErrConflict)
		wantErr(t, r.store.Delete(ctx, uri, first), ErrConflict)
		if got, err = r.store.Get(ctx, uri); err != nil || string(got.Content) != "two" || got.Generation != second {
			t.Errorf("got %q of %d, %v; want two of %d", got.Content, got.Generation, err, second)
		}

		must(t, r.store.Delete(ctx, uri, second))
		_, err = r.store.Get(ctx, uri)
		wantErr(t, err, ErrNotExist)
		wantErr(t, r.store.Delete(ctx, uri, second), ErrNotExist)
		if again := mustPut(t, r.store, uri, "again", 0); again <= second {
			t.Errorf("generation %d after %d of a deleted object", again, second)
		}
	})
}

func TestStoreGoesBackWithNoClock(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		t.Helper()
		uri := Join(r.dir, "object")
		first := mustPut(t, r.store, uri, "one", 0)
		r.clock.set(start.Add(-time.Hour))
		if second := mustPut(t, r.store, uri, "two", first); second <= first {
			t.Errorf("generation %d after %d", second, first)
		}
	})
}

func TestStoreOneWriterWins(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		t.Helper()
		uri := Join(r.dir, "object")
		generation := int64(0)
		for round := range 4 {
			var (
				wg   sync.WaitGroup
				mu   sync.Mutex
				wins []int64
			)
			for i := range 6 {
				wg.Go(func() {
					g, err := r.store.Put(t.Context(), uri, []byte(strconv.Itoa(i)), generation)
					if err != nil {
						wantErr(t, err, ErrConflict)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					wins = append(wins, g)
				})
			}
			wg.Wait()
			if len(wins) != 1 {
				t.Fatalf("round %d: %d writers won, want 1", round, len(wins))
			}
			generation = wins[0]
		}
	})
}

func TestStoreKeepsContentAndNames(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		t.Helper()
		contents := map[string][]byte{
			"empty": {}, "binary": {0, 255, '\n', 0}, "with space+plus": []byte("a"), "100%25?x=y#z": []byte("b"),
			"ümläut-日本": []byte("c"), "-dash..dots": []byte("d"), "multipart": []byte("\r\n--boundary\r\n"),
		}
		for name, content := range contents {
			g := mustPut(t, r.store, Join(r.dir, name), string(content), 0)
			got, err := r.store.Get(t.Context(), Join(r.dir, name))
			if err != nil || !bytes.Equal(got.Content, content) || got.Generation != g {
				t.Errorf("%s: got %q of %d, %v; want %q of %d", name, got.Content, got.Generation, err, content, g)
			}
		}
		l, err := r.store.List(t.Context(), r.dir, ListOptions{})
		if err != nil || len(l.Entries) != len(contents) {
			t.Errorf("listed %d names, %v; want %d", len(l.Entries), err, len(contents))
		}
	})
}

func TestStoreRefuses(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		t.Helper()
		ctx := t.Context()
		scheme, _, _ := strings.Cut(r.dir, "://")
		for _, uri := range []string{
			Join(r.dir, "../other"), Join(r.dir, "a/../../b"), Join(r.dir, "./a"), Join(r.dir, ".."), Join(r.dir, "line\nbreak"),
			Join(r.dir, "nul\x00"), Join(r.dir, "\xff"), "s3://bucket/x", "/etc/passwd", "", scheme + "://", scheme + ":/x",
		} {
			_, err := r.store.Get(ctx, uri)
			wantErr(t, err, ErrInvalid)
			_, err = r.store.List(ctx, uri, ListOptions{})
			wantErr(t, err, ErrInvalid)
			_, err = r.store.Put(ctx, uri, nil, 0)
			wantErr(t, err, ErrInvalid)
			wantErr(t, r.store.Delete(ctx, uri, 1), ErrInvalid)
		}
		_, err := r.store.Put(ctx, Join(r.dir, "a")+"/", nil, 0)
		wantErr(t, err, ErrInvalid)
		_, err = r.store.Put(ctx, Join(r.dir, "a"), nil, -1)
		wantErr(t, err, ErrInvalid)
		wantErr(t, r.store.Delete(ctx, Join(r.dir, "a"), 0), ErrInvalid)
		_, err = r.store.Put(ctx, Join(r.dir, "a"), tooLarge, 0)
		wantErr(t, err, ErrInvalid)
		r.seed(t, "large", tooLarge, start)
		_, err = r.store.Get(ctx, Join(r.dir, "large"))
		wantErr(t, err, ErrInvalid)
		r.seed(t, "sub/object", nil, start)
		_, err = r.store.Get(ctx, Join(r.dir, "sub"))
		wantErr(t, err, ErrNotExist)
	})
}

func TestStoreLists(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		t.Helper()
		later := start.Add(90 * time.Second)
		r.seed(t, "b", []byte("bb"), start)
		r.seed(t, "a/x", []byte("1"), start)
		r.seed(t, "a/y/z", nil, later)
		r.seed(t, "a-b", []byte("4444"), later)
		r.seed(t, "c/only", []byte("5"), start)
		file := func(name string, size int64, at time.Time) Entry { return Entry{Name: name, Size: size, Updated: at} }
		dir := func(name string) Entry { return Entry{Name: name, Dir: true} }
		for _, tt := range []struct {
			name string
			dir  string
			opts ListOptions
			want Listing
		}{
			{"all names of a directory", r.dir, ListOptions{}, Listing{Entries: []Entry{
				dir("a"), file("a-b", 4, later), file("b", 2, start), dir("c"),
			}}},
			{"a slash at the end changes nothing", r.dir + "/", ListOptions{Prefix: "b"}, Listing{Entries: []Entry{
				file("b", 2, start),
			}}},
			{"the names with a prefix", r.dir, ListOptions{Prefix: "a"}, Listing{Entries: []Entry{dir("a"), file("a-b", 4, later)}}},
			{"no name has the prefix", r.dir, ListOptions{Prefix: "zz"}, Listing{}},
			{"no name of nothing has the prefix", Join(r.dir, "none"), ListOptions{Prefix: "zz"}, Listing{}},
			{"the first names", r.dir, ListOptions{Limit: 2}, Listing{Truncated: true, Entries: []Entry{
				dir("a"), file("a-b", 4, later),
			}}},
			{"as many names as there are", r.dir, ListOptions{Limit: 4}, Listing{Entries: []Entry{
				dir("a"), file("a-b", 4, later), file("b", 2, start), dir("c"),
			}}},
			{"objects at every depth", r.dir, ListOptions{Recursive: true}, Listing{Entries: []Entry{
				file("a-b", 4, later), file("a/x", 1, start), file("a/y/z", 0, later), file("b", 2, start), file("c/only", 1, start),
			}}},
			{"objects at every depth with a prefix", r.dir, ListOptions{Recursive: true, Prefix: "a/y"}, Listing{Entries: []Entry{
				file("a/y/z", 0, later),
			}}},
			{"one object is enough", r.dir, ListOptions{Recursive: true, Prefix: "c/", Limit: 1}, Listing{Entries: []Entry{
				file("c/only", 1, start),
			}}},
			{"below a directory", Join(r.dir, "a"), ListOptions{}, Listing{Entries: []Entry{file("x", 1, start), dir("y")}}},
		} {
			got, err := r.store.List(t.Context(), tt.dir, tt.opts)
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			for i := range got.Entries {
				if e := &got.Entries[i]; e.Dir == (e.Generation != 0) {
					t.Errorf("%s: %s has generation %d", tt.name, e.Name, e.Generation)
				}
				got.Entries[i].Generation = 0
			}
			if len(got.Entries) == 0 {
				got.Entries = nil
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s differs (-want +got):\n%s", tt.name, diff)
			}
		}
		_, err := r.store.List(t.Context(), Join(r.dir, "none"), ListOptions{})
		wantErr(t, err, ErrNotExist)

		g := mustPut(t, r.store, Join(r.dir, "mine"), "x", 0)
		l, err := r.store.List(t.Context(), r.dir, ListOptions{Prefix: "mine"})
		if err != nil || len(l.Entries) != 1 || l.Entries[0].Generation != g {
			t.Errorf("listed %+v, %v; want generation %d", l.Entries, err, g)
		}
	})
}

func TestStoreListsAllPages(t *testing.T) {
	t.Parallel()
	r := overTransport(t)
	var want []string
	for i := range 1203 {
		name := fmt.Sprintf("n%04d", i)
		want = append(want, name)
		if i%3 == 0 {
			name += "/below"
		}
		r.seed(t, name, nil, start)
	}
	l, err := r.store.List(t.Context(), r.dir, ListOptions{})
	if err != nil || l.Truncated {
		t.Fatalf("truncated: %v, %v", l.Truncated, err)
	}
	var got []string
	for _, e := range l.Entries {
		got = append(got, e.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %d names, want %d", len(got), len(want))
	}
	if n := r.server.Calls(buckettest.MethodList); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}

func TestBucketClassifiesErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		fault buckettest.Fault
		want  error
	}{
		{"forbidden", buckettest.Fault{Status: 403}, ErrPermission},
		{"no credentials", buckettest.Fault{Status: 401}, ErrPermission},
		{"too fast, said with 403", buckettest.Fault{Status: 403, Reason: "rateLimitExceeded"}, ErrTransient},
		{"too fast", buckettest.Fault{Status: 429}, ErrTransient},
		{"unavailable", buckettest.Fault{Status: 503}, ErrTransient},
		{"internal", buckettest.Fault{Status: 500}, ErrTransient},
		{"gone", buckettest.Fault{Status: 410}, ErrTransient},
		{"bad request", buckettest.Fault{Status: 400}, ErrInvalid},
		{"not found", buckettest.Fault{Status: 404}, ErrNotExist},
		{"precondition", buckettest.Fault{Status: 412}, ErrConflict},
		{"lost answer", buckettest.Fault{LoseAnswer: true}, ErrTransient},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := overTransport(t)
			ctx, uri := t.Context(), Join(r.dir, "object")
			generation := mustPut(t, r.store, uri, "x", 0)
			for _, m := range []buckettest.Method{
				buckettest.MethodGet, buckettest.MethodList, buckettest.MethodInsert, buckettest.MethodDelete,
			} {
				tt.fault.Method = m
				r.server.Inject(tt.fault)
			}
			_, err := r.store.Get(ctx, uri)
			wantErr(t, err, tt.want)
			_, err = r.store.List(ctx, r.dir, ListOptions{})
			wantErr(t, err, tt.want)
			_, err = r.store.Put(ctx, uri, nil, generation)
			wantErr(t, err, tt.want)
			err = r.store.Delete(ctx, uri, generation)
			if tt.fault.LoseAnswer { // the write before took effect
				wantErr(t, err, ErrTransient)
			} else {
				wantErr(t, err, tt.want)
			}
			var e *Error
			if !errors.As(err, &e) || e.Op != "delete" || e.URI != uri {
				t.Errorf("error %v does not name the call", err)
			}
		})
	}
}

func TestBucketThatDoesNotExist(t *testing.T) {
	t.Parallel()
	r := overTransport(t)
	_, err := r.store.Get(t.Context(), "gs://other/x")
	wantErr(t, err, ErrNotExist)
	_, err = r.store.List(t.Context(), "gs://other", ListOptions{})
	wantErr(t, err, ErrNotExist)
	_, err = r.store.Put(t.Context(), "gs://other/x", nil, 0)
	wantErr(t, err, ErrNotExist)
	if l, err := r.store.List(t.Context(), "gs://ckpt", ListOptions{}); err != nil || len(l.Entries) != 0 {
		t.Errorf("listed %v, %v; want nothing in a bucket that is empty", l.Entries, err)
	}
}

func TestBucketSaysWhatTheCallerLeft(t *testing.T) {
	t.Parallel()
	r := overSocket(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.store.Get(ctx, Join(r.dir, "object"))
	wantErr(t, err, ErrTransient)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v does not say that the caller left", err)
	}
}

func TestBucketSeesDirectoriesThatToolsWriteDown(t *testing.T) {
	t.Parallel()
	r := overTransport(t)
	r.seed(t, "empty/", nil, start)
	if l, err := r.store.List(t.Context(), Join(r.dir, "empty"), ListOptions{}); err != nil || len(l.Entries) != 0 {
		t.Errorf("listed %v, %v; want an empty directory", l.Entries, err)
	}
	l, err := r.store.List(t.Context(), r.dir, ListOptions{})
	if diff := cmp.Diff([]Entry{{Name: "empty", Dir: true}}, l.Entries); err != nil || diff != "" {
		t.Errorf("%v, differs (-want +got):\n%s", err, diff)
	}
}

// strip takes the header with the generation off every answer.
type strip struct{ next http.RoundTripper }

func (s strip) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := s.next.RoundTrip(r)
	if err == nil {
		res.Header.Del("X-Goog-Generation")
	}
	return res, err
}

func TestBucketBelievesNoContentWithoutGeneration(t *testing.T) {
	t.Parallel()
	r := bucketRig(t, func(s *buckettest.Server) []option.ClientOption {
		return []option.ClientOption{client(strip{s.Transport()})}
	})
	r.seed(t, "object", nil, start)
	_, err := r.store.Get(t.Context(), Join(r.dir, "object"))
	wantErr(t, err, ErrTransient)
}

func TestBucketMakesItsClientAgain(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "credentials.json")
	b := NewBucket(option.WithAuthCredentialsFile(option.ServiceAccount, missing))
	for range 2 {
		_, err := b.Get(t.Context(), "gs://ckpt/object")
		wantErr(t, err, ErrTransient)
		if b.svc != nil {
			t.Fatal("a client was kept that was never made")
		}
	}
	if _, err := b.Get(t.Context(), "gs://ckpt"); !errors.Is(err, ErrInvalid) {
		t.Errorf("a wrong URI gives %v", err)
	}
}

func TestFilesStayInTheirRoot(t *testing.T) {
	t.Parallel()
	outside, root := t.TempDir(), filepath.Join(t.TempDir(), "root")
	must(t, os.MkdirAll(filepath.Join(root, "in"), 0o750))
	for link, target := range map[string]string{"out": outside, "up": "..", "alias": "in", "loose": "nothing"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Skip(err)
		}
	}
	f := NewFiles(root, newClock().now)
	for _, uri := range []string{
		"file://" + outside + "/x", "file://" + root + "-not/x", "file://" + root + "/out/x", "file://" + root + "/up/x", "file:///",
	} {
		_, err := f.Put(t.Context(), uri, nil, 0)
		wantErr(t, err, ErrInvalid)
		_, err = f.Get(t.Context(), uri)
		wantErr(t, err, ErrInvalid)
		_, err = f.List(t.Context(), uri, ListOptions{})
		wantErr(t, err, ErrInvalid)
	}
	mustPut(t, f, "file://"+root+"/alias/new/x", "here", 0)
	if _, err := os.Stat(filepath.Join(root, "in", "new", "x")); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
		t.Errorf("outside holds %v, %v", entries, err)
	}
	l, err := f.List(t.Context(), "file://"+root, ListOptions{})
	var names []string
	for _, e := range l.Entries {
		names = append(names, e.Name)
	}
	// A link to nothing is no name; one that leads out shows, and opens nothing.
	if diff := cmp.Diff([]string{"alias", "in", "out", "up"}, names); err != nil || diff != "" {
		t.Errorf("%v, names differ (-want +got):\n%s", err, diff)
	}
	if l, err := f.List(t.Context(), "file://"+root, ListOptions{Recursive: true}); err != nil || len(l.Entries) != 1 {
		t.Errorf("a recursive listing has %v, %v; want in/new/x alone", l.Entries, err)
	}
}

func TestFilesWithAWholeSystemAsRoot(t *testing.T) {
	t.Parallel()
	f := NewFiles("/", newClock().now)
	uri := "file://" + t.TempDir() + "/x"
	g := mustPut(t, f, uri, "here", 0)
	if o, err := f.Get(t.Context(), uri); err != nil || o.Generation != g {
		t.Errorf("got %d, %v; want %d", o.Generation, err, g)
	}
}

func TestFilesSeeAnEditNobodyCoordinated(t *testing.T) {
	t.Parallel()
	r := overFiles(t)
	uri := Join(r.dir, "object")
	generation := mustPut(t, r.store, uri, "one", 0)
	r.seed(t, "object", []byte("edited"), start.Add(time.Second))
	_, err := r.store.Put(t.Context(), uri, []byte("two"), generation)
	wantErr(t, err, ErrConflict)
	// A file whose time lies ahead of the clock is replaced by a newer one all the same.
	o, err := r.store.Get(t.Context(), uri)
	must(t, err)
	if g := mustPut(t, r.store, uri, "two", o.Generation); g <= o.Generation {
		t.Errorf("generation %d after %d", g, o.Generation)
	}
	// Nor does one that is deleted come back with its old generation.
	r.seed(t, "object", []byte("edited"), start.Add(time.Hour))
	if o, err = r.store.Get(t.Context(), uri); err != nil {
		t.Fatal(err)
	}
	must(t, r.store.Delete(t.Context(), uri, o.Generation))
	if g := mustPut(t, r.store, uri, "three", 0); g <= o.Generation {
		t.Errorf("generation %d after %d of a deleted file", g, o.Generation)
	}
}

func TestFilesLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	r := overFiles(t)
	uri := Join(r.dir, "object")
	generation := mustPut(t, r.store, uri, "one", 0)
	_, err := r.store.Put(t.Context(), uri, []byte("two"), 0)
	wantErr(t, err, ErrConflict)
	mustPut(t, r.store, uri, "two", generation)
	names, err := os.ReadDir(strings.TrimPrefix(r.dir, "file://"))
	must(t, err)
	var got []string
	for _, n := range names {
		got = append(got, n.Name())
	}
	if diff := cmp.Diff([]string{lockName, "object"}, got); diff != "" {
		t.Errorf("names differ (-want +got):\n%s", diff)
	}
	if l, err := r.store.List(t.Context(), r.dir, ListOptions{}); err != nil || len(l.Entries) != 1 {
		t.Errorf("listed %v, %v; want the object alone", l.Entries, err)
	}
}

func TestFilesRefuseWhatStandsInTheWay(t *testing.T) {
	t.Parallel()
	r := overFiles(t)
	r.seed(t, "file", []byte("x"), start)
	r.seed(t, "dir/x", nil, start)
	_, err := r.store.Put(t.Context(), Join(r.dir, "file/below"), nil, 0)
	wantErr(t, err, ErrInvalid)
	_, err = r.store.Get(t.Context(), Join(r.dir, "file/below"))
	wantErr(t, err, ErrNotExist)
	_, err = r.store.List(t.Context(), Join(r.dir, "file"), ListOptions{})
	wantErr(t, err, ErrNotExist)
	_, err = r.store.Put(t.Context(), Join(r.dir, "dir"), nil, 0)
	wantErr(t, err, ErrInvalid)
	if os.Getuid() == 0 {
		return // root may everything
	}
	must(t, os.Chmod(strings.TrimPrefix(Join(r.dir, "dir"), "file://"), 0))
	_, err = r.store.Get(t.Context(), Join(r.dir, "dir/x"))
	wantErr(t, err, ErrPermission)
}

func TestFilesWaitForTheLockAsLongAsTheCallerDoes(t *testing.T) {
	t.Parallel()
	r := overFiles(t)
	held, err := os.Create(filepath.Join(strings.TrimPrefix(r.dir, "file://"), lockName))
	must(t, err)
	defer held.Close() //nolint:errcheck // closing releases the lock in any case
	if ok, err := tryLock(held); !ok || err != nil {
		t.Fatalf("lock: %v, %v", ok, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = r.store.Put(ctx, Join(r.dir, "object"), nil, 0)
	wantErr(t, err, ErrTransient)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v does not say that the caller left", err)
	}
}

// increments is how often each process raises the number in TestFilesOfTwoProcesses.
const increments = 8

func TestFilesOfTwoProcesses(t *testing.T) {
	if uri := os.Getenv("CHECKPOINT_TEST_INCREMENT"); uri != "" {
		raise(t, uri)
		return
	}
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no advisory locks")
	}
	r := overFiles(t)
	uri := Join(r.dir, "number")
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFilesOfTwoProcesses$") //nolint:gosec // itself
			cmd.Env = append(os.Environ(), "CHECKPOINT_TEST_INCREMENT="+uri, "GORACE=atexit_sleep_ms=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	o, err := r.store.Get(t.Context(), uri)
	if want := strconv.Itoa(2 * increments); err != nil || string(o.Content) != want {
		t.Errorf("the number is %s, %v; want %s: a write was lost", o.Content, err, want)
	}
}

func raise(t *testing.T, uri string) {
	t.Helper()
	f := NewFiles("/", time.Now)
	for done := 0; done < increments; {
		o, err := f.Get(t.Context(), uri)
		if err != nil && !errors.Is(err, ErrNotExist) {
			t.Fatal(err)
		}
		n, _ := strconv.Atoi(string(o.Content)) //nolint:errcheck // nothing at first, and that is 0
		switch _, err := f.Put(t.Context(), uri, []byte(strconv.Itoa(n+1)), o.Generation); {
		case err == nil:
			done++
		case !errors.Is(err, ErrConflict):
			t.Fatal(err)
		}
	}
}

func TestMuxPicksByScheme(t *testing.T) {
	t.Parallel()
	gs, file := overTransport(t), overFiles(t)
	m := Mux{"gs": gs.store, "file": file.store}
	for _, dir := range []string{gs.dir, file.dir} {
		uri := Join(dir, "object")
		g := mustPut(t, m, uri, "x", 0)
		if o, err := m.Get(t.Context(), uri); err != nil || o.Generation != g {
			t.Errorf("%s: got %d, %v", uri, o.Generation, err)
		}
		if l, err := m.List(t.Context(), dir, ListOptions{}); err != nil || len(l.Entries) != 1 {
			t.Errorf("%s: listed %v, %v", dir, l.Entries, err)
		}
		if err := m.Delete(t.Context(), uri, g); err != nil {
			t.Error(err)
		}
	}
	for _, uri := range []string{"s3://bucket/x", "gs:/bucket/x", "bucket", ""} {
		_, err := m.Get(t.Context(), uri)
		wantErr(t, err, ErrInvalid)
		_, err = m.List(t.Context(), uri, ListOptions{})
		wantErr(t, err, ErrInvalid)
		_, err = m.Put(t.Context(), uri, nil, 0)
		wantErr(t, err, ErrInvalid)
		wantErr(t, m.Delete(t.Context(), uri, 1), ErrInvalid)
	}
	_, err := m.Get(t.Context(), "s3://bucket/x")
	if want := "get s3://bucket/x: is not possible: a URI has to begin with file:// or gs://"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

// TestCrewsFollowNoLink: if others may write into a checkpoint directory, a link in the crews' folder, or instead of it,
// leads to a file of their choice. The owner may use links for the directory and for checkpoints.
func TestCrewsFollowNoLink(t *testing.T) {
	const secret = `{"a":1}`
	for _, c := range []struct {
		name, link, uri string
		refused         bool
	}{
		{"the folder", "run/" + CrewName, "run/" + CrewName + "/holder.json", true},
		{"a folder in it", "run/" + CrewName + "/attempt-000001", "run/" + CrewName + "/attempt-000001/holder.json", true},
		{"a file in it", "run/" + CrewName + "/holder.json", "run/" + CrewName + "/holder.json", true},
		{"a directory of such a name", "run/" + CrewName + "-1", "run/" + CrewName + "-1/holder.json", false},
		{"a checkpoint", "run/40", "run/40/holder.json", false},
	} {
		root, target := t.TempDir(), t.TempDir()
		if strings.HasSuffix(c.link, ".json") {
			target = filepath.Join(target, "holder.json")
		}
		victim := strings.TrimSuffix(target, "/holder.json") + "/holder.json"
		link := filepath.Join(root, c.link)
		must(t, errors.Join(os.WriteFile(victim, []byte(secret), 0o600), os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(target, link)))
		s := NewFiles("/", time.Now)
		uri := "file://" + filepath.Join(root, c.uri)
		o, err := s.Get(t.Context(), uri)
		if refused := errors.Is(err, ErrInvalid) && strings.Contains(err.Error(), link+" is a link"); refused != c.refused || refused == (string(o.Content) == secret) {
			t.Errorf("%s: get: %q, %v", c.name, o.Content, err)
		}
		if !c.refused {
			continue
		}
		info, err := os.Stat(victim)
		must(t, err)
		_, created := s.Put(t.Context(), strings.Replace(uri, "holder", "new", 1), []byte("x"), 0)
		_, replaced := s.Put(t.Context(), uri, []byte("x"), generationOf(info))
		if deleted := s.Delete(t.Context(), uri, generationOf(info)); deleted == nil || replaced == nil || created == nil && c.name != "a file in it" {
			t.Errorf("%s: %v, %v, %v", c.name, created, replaced, deleted)
		}
		names, derr := os.ReadDir(filepath.Dir(victim))
		if raw, err := os.ReadFile(victim); err != nil || derr != nil || string(raw) != secret || len(names) != 1 {
			t.Errorf("%s: %q, %v, %v: the link was followed", c.name, raw, names, err)
		}
	}
}

// TestALockThatIsALinkIsNotWrittenTo: the store writes a number into its lock.
func TestALockThatIsALinkIsNotWrittenTo(t *testing.T) {
	root, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	link := filepath.Join(root, lockName)
	must(t, errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.Symlink(victim, link)))
	_, err := NewFiles("/", time.Now).Put(t.Context(), "file://"+root+"/a.json", []byte("x"), 0)
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), link+" is a link") {
		t.Error(err)
	}
	if raw, err := os.ReadFile(victim); err != nil || string(raw) != "precious" {
		t.Errorf("%q, %v", raw, err)
	}
}

// silent answers no request.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestABucketThatDoesNotAnswerEndsACall after a minute. The time is that of the bubble.
func TestABucketThatDoesNotAnswerEndsACall(t *testing.T) {
	const uri = "gs://ckpt/llama-8b/" + LeaseName
	for name, call := range map[string]func(ctx context.Context, b *Bucket) error{
		"get": func(ctx context.Context, b *Bucket) error {
			_, err := b.Get(ctx, uri)
			return err
		},
		"list": func(ctx context.Context, b *Bucket) error {
			_, err := b.List(ctx, "gs://ckpt/llama-8b", ListOptions{})
			return err
		},
		"put": func(ctx context.Context, b *Bucket) error {
			_, err := b.Put(ctx, uri, []byte("{}"), 0)
			return err
		},
		"delete": func(ctx context.Context, b *Bucket) error { return b.Delete(ctx, uri, 1) },
		"location": func(ctx context.Context, b *Bucket) error {
			_, err := b.Location(ctx, "gs://ckpt/llama-8b")
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := NewBucket(option.WithHTTPClient(&http.Client{Transport: silent{}}), option.WithoutAuthentication())
			start := time.Now()
			err := call(t.Context(), b)
			if took := time.Since(start); !errors.Is(err, ErrTransient) || took != time.Minute {
				t.Errorf("%s: %v after %s, want a failure of the storage after a minute", name, err, took)
			}
		})
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
