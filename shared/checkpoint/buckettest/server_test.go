package buckettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"
)

var start = time.Date(2026, time.November, 12, 2, 14, 7, 5e8, time.UTC)

func newServer(t *testing.T) (*Server, *storage.Service) {
	t.Helper()
	s := New(func() time.Time { return start }, "ckpt")
	svc, err := storage.NewService(t.Context(), option.WithHTTPClient(&http.Client{Transport: s.Transport()}))
	if err != nil {
		t.Fatal(err)
	}
	return s, svc
}

// status is the HTTP status and the reason of an API error.
func status(t *testing.T, err error) (int, string) {
	t.Helper()
	var e *googleapi.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v is none of the API", err)
	}
	if len(e.Errors) == 0 {
		return e.Code, ""
	}
	return e.Code, e.Errors[0].Reason
}

func TestObjectsOfTheGeneratedClient(t *testing.T) {
	t.Parallel()
	s, svc := newServer(t)
	upload := func(o *storage.Object, opts ...googleapi.MediaOption) (*storage.Object, error) {
		return svc.Objects.Insert("ckpt", o).IfGenerationMatch(0).Media(strings.NewReader("hello"), opts...).Do()
	}
	o, err := upload(&storage.Object{Name: "a/b c", ContentType: "text/x-test", CacheControl: "no-store"})
	if err != nil {
		t.Fatal(err)
	}
	if o.Name != "a/b c" || o.Size != 5 || o.ContentType != "text/x-test" || o.CacheControl != "no-store" ||
		o.Bucket != "ckpt" ||
		o.Updated != "2026-11-12T02:14:07.500Z" || o.Crc32c != "mnG7TA==" || o.Md5Hash != "XUFAKrxLKna5cZ2REBfFkg==" {
		t.Errorf("inserted %+v", o)
	}
	if o.Generation != start.UnixMicro() {
		t.Errorf("generation %d is not the time in microseconds", o.Generation)
	}
	if _, err = upload(&storage.Object{Name: "a/b c"}); err == nil {
		t.Fatal("two inserts of what must not exist")
	}
	if code, reason := status(t, err); code != 412 || reason != "conditionNotMet" {
		t.Errorf("answer %d %s", code, reason)
	}
	if _, err := upload(&storage.Object{Name: "chunk"}, googleapi.ChunkSize(0)); err != nil {
		t.Error(err)
	}
	got, err := svc.Objects.Get("ckpt", "a/b c").Do()
	if err != nil || got.Generation != o.Generation || got.Etag != o.Etag {
		t.Errorf("got %+v, %v", got, err)
	}
	res, err := svc.Objects.Get("ckpt", "a/b c").Generation(o.Generation).Download()
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(res.Body)
	if err != nil || string(body) != "hello" || res.Header.Get("X-Goog-Generation") != fmt.Sprint(o.Generation) ||
		res.Header.Get("Last-Modified") != "Thu, 12 Nov 2026 02:14:07 GMT" {
		t.Errorf("downloaded %q with %v, %v", body, res.Header, err)
	}
	for name, err := range map[string]error{
		"no such object":     second(svc.Objects.Get("ckpt", "x").Do()),
		"no such download":   second(svc.Objects.Get("ckpt", "x").Download()), //nolint:bodyclose // an error has none
		"no such generation": second(svc.Objects.Get("ckpt", "a/b c").Generation(1).Do()),
		"no such bucket":     second(svc.Objects.Get("other", "a").Do()),
		"nothing to delete":  svc.Objects.Delete("ckpt", "x").IfGenerationMatch(1).Do(),
	} {
		if code, _ := status(t, err); code != 404 {
			t.Errorf("%s: answer %d", name, code)
		}
	}
	if err := svc.Objects.Delete("ckpt", "a/b c").IfGenerationMatch(1).Do(); err == nil {
		t.Error("deleted another generation")
	}
	if err := svc.Objects.Delete("ckpt", "a/b c").IfGenerationMatch(o.Generation).Do(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"chunk"}, s.List("ckpt", "")); diff != "" {
		t.Errorf("names differ (-want +got):\n%s", diff)
	}
}

func second[T any](_ T, err error) error { return err }

func TestPages(t *testing.T) {
	t.Parallel()
	s, svc := newServer(t)
	for i := range 7 {
		s.Put("ckpt", fmt.Sprintf("d/n%d", i), nil)
		s.Put("ckpt", fmt.Sprintf("d/n%d/below", i), nil)
		s.Put("ckpt", fmt.Sprintf("d/n%d/below2", i), nil)
	}
	s.Put("ckpt", "d/", nil)
	s.Put("ckpt", "d/noted/", nil)
	s.Put("ckpt", "e", nil)
	for size := int64(1); size < 20; size++ {
		var items, prefixes []string
		pages := 0
		call := svc.Objects.List("ckpt").Prefix("d/").Delimiter("/").MaxResults(size)
		err := call.Pages(t.Context(), func(o *storage.Objects) error {
			pages++
			if n := len(o.Items) + len(o.Prefixes); int64(n) > size || n == 0 {
				t.Errorf("%d names in a page of %d", n, size)
			}
			for _, item := range o.Items {
				items = append(items, item.Name)
			}
			prefixes = append(prefixes, o.Prefixes...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		wantItems := []string{"d/", "d/n0", "d/n1", "d/n2", "d/n3", "d/n4", "d/n5", "d/n6"}
		wantPrefixes := []string{"d/n0/", "d/n1/", "d/n2/", "d/n3/", "d/n4/", "d/n5/", "d/n6/", "d/noted/"}
		if !slices.Equal(items, wantItems) || !slices.Equal(prefixes, wantPrefixes) {
			t.Errorf("pages of %d: %v and %v", size, items, prefixes)
		}
		if want := int((16 + size - 1) / size); pages != want {
			t.Errorf("%d pages of %d, want %d", pages, size, want)
		}
	}
	flat, err := svc.Objects.List("ckpt").Prefix("d/n6").Do()
	if err != nil || len(flat.Items) != 3 || len(flat.Prefixes) != 0 {
		t.Errorf("listed %+v, %v", flat, err)
	}
}

func TestFieldMask(t *testing.T) {
	t.Parallel()
	s, svc := newServer(t)
	s.Put("ckpt", "a", []byte("x"))
	o, err := svc.Objects.List("ckpt").Fields("prefixes", "items(name,size)").Do()
	if err != nil || len(o.Items) != 1 {
		t.Fatalf("listed %+v, %v", o, err)
	}
	if o.Items[0].Name != "a" || o.Items[0].Size != 1 || o.Items[0].Generation != 0 || o.Kind != "" {
		t.Errorf("listed %+v, %v", o, err)
	}
}

func TestWhatIsNotSimulatedIsRefused(t *testing.T) {
	t.Parallel()
	s, svc := newServer(t)
	s.Put("ckpt", "a", nil)
	insert := func(name string, media io.Reader, opts ...googleapi.MediaOption) error {
		return second(svc.Objects.Insert("ckpt", &storage.Object{Name: name}).Media(media, opts...).Do())
	}
	large := bytes.NewReader(make([]byte, googleapi.MinUploadChunkSize+1))
	for name, tt := range map[string]struct {
		err  error
		want int
	}{
		"a glob":         {second(svc.Objects.List("ckpt").MatchGlob("*").Do()), 400},
		"versions":       {second(svc.Objects.List("ckpt").Versions(true).Do()), 400},
		"a copy":         {second(svc.Objects.Copy("ckpt", "a", "ckpt", "b", nil).Do()), 501},
		"a bucket's ACL": {second(svc.Buckets.Get("ckpt").Projection("full").Do()), 400},
		"a new bucket":   {second(svc.Buckets.Insert("p", &storage.Bucket{Name: "x"}).Do()), 404},
		"no bucket":      {second(svc.Buckets.Get("other").Do()), 404},
		"chunks":         {insert("b", large, googleapi.ChunkSize(1)), 501},
		"no media":       {second(svc.Objects.Insert("ckpt", &storage.Object{Name: "b"}).Do()), 501},
		"no name":        {insert("", strings.NewReader("")), 400},
		"a wrong name":   {insert("a\nb", strings.NewReader("")), 400},
		"a wrong token":  {second(svc.Objects.List("ckpt").PageToken("?").Do()), 400},
		"an empty page":  {second(svc.Objects.List("ckpt").MaxResults(0).Do()), 400},
		"another bucket": {second(svc.Objects.List("other").Do()), 404},
	} {
		if code, _ := status(t, tt.err); code != tt.want {
			t.Errorf("%s: %v, want %d", name, tt.err, tt.want)
		}
	}
	if diff := cmp.Diff([]string{"a"}, s.List("ckpt", "")); diff != "" {
		t.Errorf("names differ (-want +got):\n%s", diff)
	}
}

func TestMediaUpload(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	url := srv.URL + "/upload/storage/v1/b/ckpt/o?uploadType=media&name=x%2Fy"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	if content, _, ok := s.Get("ckpt", "x/y"); res.StatusCode != 200 || !ok || string(content) != "hello" {
		t.Errorf("answer %d, %q is there: %v", res.StatusCode, content, ok)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s, svc := newServer(t)
	s.Put("ckpt", "a", nil)
	s.Put("ckpt", "b", nil)
	s.Inject(Fault{Method: MethodGet, Object: "a", Status: 503, Times: 2})
	s.Inject(Fault{Method: MethodGet, Status: 403})
	get := func(name string) int {
		_, err := svc.Objects.Get("ckpt", name).Do()
		if err == nil {
			return 200
		}
		code, reason := status(t, err)
		if reason == "" {
			t.Errorf("answer %d has no reason", code)
		}
		return code
	}
	got := []int{get("b"), get("b"), get("a"), get("a"), get("a")}
	if diff := cmp.Diff([]int{403, 200, 503, 503, 200}, got); diff != "" {
		t.Errorf("answers differ (-want +got):\n%s", diff)
	}
	if n := s.Calls(MethodGet); n != 5 {
		t.Errorf("counted %d calls, want 5", n)
	}
	for _, opts := range [][]option.ClientOption{nil, overSocket(t, s)} {
		if opts != nil {
			var err error
			if svc, err = storage.NewService(t.Context(), opts...); err != nil {
				t.Fatal(err)
			}
		}
		s.Inject(Fault{Method: MethodInsert, LoseAnswer: true})
		name := fmt.Sprint("lost", len(opts))
		_, err := svc.Objects.Insert("ckpt", &storage.Object{Name: name}).Media(strings.NewReader("x")).Do()
		var api *googleapi.Error
		if err == nil || errors.As(err, &api) {
			t.Errorf("error %v; want a connection that broke", err)
		}
		if _, _, ok := s.Get("ckpt", name); !ok {
			t.Error("the write whose answer was lost did not take effect")
		}
	}
}

func overSocket(t *testing.T, s *Server) []option.ClientOption {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return []option.ClientOption{option.WithEndpoint(srv.URL + "/storage/v1/"), option.WithoutAuthentication()}
}

func TestOnChangeMayCallTheServer(t *testing.T) {
	t.Parallel()
	s, svc := newServer(t)
	var seen []string
	s.OnChange(func(bucket, name string, deleted bool) {
		_, _, there := s.Get(bucket, name)
		seen = append(seen, fmt.Sprint(name, " deleted ", deleted, " there ", there))
	})
	s.Put("ckpt", "a", nil)
	insert := svc.Objects.Insert("ckpt", &storage.Object{Name: "b"}).IfGenerationMatch(0)
	if _, err := insert.Media(strings.NewReader("x")).Do(); err != nil {
		t.Fatal(err)
	}
	if _, err := insert.Media(strings.NewReader("x")).Do(); err == nil {
		t.Fatal("inserted over an object")
	}
	if err := svc.Objects.Delete("ckpt", "b").Do(); err != nil {
		t.Fatal(err)
	}
	if !s.Delete("ckpt", "a") || s.Delete("ckpt", "a") || s.Delete("other", "a") {
		t.Error("deleted a missing object, or did not delete an existing one")
	}
	want := []string{
		"a deleted false there true", "b deleted false there true", "b deleted true there false", "a deleted true there false",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("changes differ (-want +got):\n%s", diff)
	}
}

func TestTransportLeavesWithTheCaller(t *testing.T) {
	t.Parallel()
	_, svc := newServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := svc.Objects.List("ckpt").Context(ctx).Do(); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
