package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"
)

// Bucket is the store behind gs:// URIs: the JSON API of Cloud Storage. It retries no call by itself.
//
// Permissions: storage.objects.get and storage.objects.list to verify; to write the lease and the request
// storage.objects.create and storage.objects.delete as well, because a replacement counts as a deletion; storage.buckets.get
// to learn the bucket's location.
type Bucket struct {
	opts []option.ClientOption

	mu  sync.Mutex
	svc *storage.Service
}

// EmulatorHost names the variable with the address of another Cloud Storage, HOST:PORT, as Google's libraries know it.
const EmulatorHost = "STORAGE_EMULATOR_HOST"

// callTimeout bounds each call: the generated client has no bound of its own.
const callTimeout = 60 * time.Second

// NewBucket makes the store. Without options it has the default credentials, or calls the emulator of EmulatorHost without any. The
// first call makes the client, and the next call tries again if that fails: credentials may be missing for a moment, and a cold
// start should not pay for an unused client.
func NewBucket(opts ...option.ClientOption) *Bucket { return &Bucket{opts: opts} }

func (b *Bucket) service(ctx context.Context) (*storage.Service, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.svc != nil {
		return b.svc, nil
	}
	// The client outlives the call: its tokens must not depend on a context that ends with it.
	opts := b.opts
	if host := os.Getenv(EmulatorHost); host != "" && len(opts) == 0 {
		host = strings.TrimPrefix(host, "http://") // both forms are in use
		opts = []option.ClientOption{option.WithEndpoint("http://" + host + "/storage/v1/"), option.WithoutAuthentication()}
	}
	svc, err := storage.NewService(context.WithoutCancel(ctx), opts...)
	if err != nil {
		return nil, fmt.Errorf("client for Cloud Storage: %w", err)
	}
	b.svc = svc
	return svc, nil
}

// splitObject returns the bucket and the object in a URI.
func splitObject(op, uri string) (bucket, object string, err error) {
	path, err := trim(op, uri, "gs")
	if err != nil {
		return "", "", err
	}
	bucket, object, _ = strings.Cut(path, "/")
	if bucket == "" || object == "" || strings.HasSuffix(object, "/") {
		return "", "", invalid(op, uri, "an object is named gs://bucket/name")
	}
	return bucket, object, nil
}

// splitDir returns the bucket and the prefix in a URI. The prefix is empty for the bucket itself, and ends with a slash
// otherwise.
func splitDir(op, uri string) (bucket, prefix string, err error) {
	path, err := trim(op, uri, "gs")
	if err != nil {
		return "", "", err
	}
	bucket, prefix, _ = strings.Cut(path, "/")
	if bucket == "" {
		return "", "", invalid(op, uri, "a directory is named gs://bucket/path")
	}
	if prefix = strings.TrimRight(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	return bucket, prefix, nil
}

// Get implements Store.
func (b *Bucket) Get(ctx context.Context, uri string) (Object, error) {
	bucket, object, err := splitObject("get", uri)
	if err != nil {
		return Object{}, err
	}
	svc, err := b.service(ctx)
	if err != nil {
		return Object{}, failed("get", uri, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	res, err := svc.Objects.Get(bucket, object).Context(ctx).Download() //nolint:bodyclose // CloseBody does
	if err != nil {
		return Object{}, failed("get", uri, err)
	}
	defer googleapi.CloseBody(res)
	if res.ContentLength > MaxBytes {
		return Object{}, invalid("get", uri, "%d bytes are more than the limit of %d", res.ContentLength, MaxBytes)
	}
	// A compressed object has no length before it is read.
	content, err := io.ReadAll(io.LimitReader(res.Body, MaxBytes+1))
	if err != nil {
		return Object{}, failed("get", uri, err)
	}
	if len(content) > MaxBytes {
		return Object{}, invalid("get", uri, "it has more than the limit of %d bytes", MaxBytes)
	}
	// Content and generation must come from one answer: a second answer may already be about another object.
	generation, err := strconv.ParseInt(res.Header.Get("X-Goog-Generation"), 10, 64)
	if err != nil || generation <= 0 {
		return Object{}, &Error{Op: "get", URI: uri, Kind: ErrTransient, Text: "the answer names no generation"}
	}
	o := Object{Content: content, Generation: generation}
	if t, err := http.ParseTime(res.Header.Get("Last-Modified")); err == nil {
		o.Updated = t.UTC()
	}
	return o, nil
}

// page is the largest page that Cloud Storage returns, and maxPages bounds a listing whose pages are nearly empty.
const (
	page     = 1000
	maxPages = 1000
)

// List implements Store.
func (b *Bucket) List(ctx context.Context, dir string, o ListOptions) (Listing, error) {
	bucket, prefix, err := splitDir("list", dir)
	if err != nil {
		return Listing{}, err
	}
	svc, err := b.service(ctx)
	if err != nil {
		return Listing{}, failed("list", dir, err)
	}
	call := svc.Objects.List(bucket).Prefix(prefix+o.Prefix).
		Fields("nextPageToken", "prefixes", "items(name,size,updated,generation)")
	if !o.Recursive {
		call.Delimiter("/")
	}
	var (
		entries []Entry
		limit   = o.limit()
		trace   = prefix == "" || o.Prefix != ""
		more    bool
	)
	for range maxPages {
		// One name more than wanted tells whether there are more.
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		objects, err := call.Context(ctx).MaxResults(int64(min(page, limit-len(entries)+1))).Do()
		cancel()
		if err != nil {
			return Listing{}, failed("list", dir, err)
		}
		for _, item := range objects.Items {
			trace = true
			// A name that ends with a slash is a directory that a tool stored as an object.
			if name := strings.TrimPrefix(item.Name, prefix); name != "" && !strings.HasSuffix(name, "/") {
				entries = append(entries, entryOf(name, item))
			}
		}
		for _, p := range objects.Prefixes {
			if name := strings.TrimSuffix(strings.TrimPrefix(p, prefix), "/"); name != "" {
				entries = append(entries, Entry{Name: name, Dir: true})
			}
		}
		if more = objects.NextPageToken != ""; !more || len(entries) > limit {
			break
		}
		call.PageToken(objects.NextPageToken)
	}
	if len(entries) == 0 && !trace {
		return Listing{}, &Error{Op: "list", URI: dir, Kind: ErrNotExist}
	}
	return sorted(entries, limit, more), nil
}

func entryOf(name string, item *storage.Object) Entry {
	e := Entry{Name: name, Size: int64(min(item.Size, 1<<62)), Generation: item.Generation}
	if t, err := time.Parse(time.RFC3339, item.Updated); err == nil {
		e.Updated = t.UTC()
	}
	return e
}

// Put implements Store.
func (b *Bucket) Put(ctx context.Context, uri string, content []byte, generation int64) (int64, error) {
	bucket, object, err := splitObject("put", uri)
	if err == nil {
		err = checkPut(uri, content, generation)
	}
	if err != nil {
		return 0, err
	}
	svc, err := b.service(ctx)
	if err != nil {
		return 0, failed("put", uri, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	// Without "no-store", a public bucket would serve the lease from a cache for an hour.
	o, err := svc.Objects.Insert(bucket, &storage.Object{Name: object, CacheControl: "no-store"}).Context(ctx).
		IfGenerationMatch(generation).Fields("generation").
		Media(bytes.NewReader(content), googleapi.ContentType("application/json"), googleapi.ChunkSize(0)).Do()
	if err != nil {
		return 0, failed("put", uri, err)
	}
	return o.Generation, nil
}

// Delete implements Store.
func (b *Bucket) Delete(ctx context.Context, uri string, generation int64) error {
	bucket, object, err := splitObject("delete", uri)
	if err == nil {
		err = checkDelete(uri, generation)
	}
	if err != nil {
		return err
	}
	svc, err := b.service(ctx)
	if err != nil {
		return failed("delete", uri, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := svc.Objects.Delete(bucket, object).Context(ctx).IfGenerationMatch(generation).Do(); err != nil {
		return failed("delete", uri, err)
	}
	return nil
}

// failed classifies an error of the API; this is the only place that does.
// Codes: https://cloud.google.com/storage/docs/json_api/v1/status-codes
func failed(op, uri string, err error) *Error {
	e := &Error{Op: op, URI: uri, Kind: ErrTransient, Cause: err}
	var api *googleapi.Error
	if !errors.As(err, &api) {
		if call := (*url.Error)(nil); errors.As(err, &call) {
			err = call.Err // the URI already has the address
		}
		e.Text = oneLine(err.Error())
		return e
	}
	message, reasons := answer(api)
	e.Text = oneLine(fmt.Sprintf("answer %d: %s", api.Code, message))
	limited := slices.ContainsFunc(reasons, func(r string) bool {
		return r == "rateLimitExceeded" || r == "userRateLimitExceeded" || r == "quotaExceeded"
	})
	switch {
	case limited:
	case api.Code == http.StatusNotFound:
		e.Kind = ErrNotExist
	case api.Code == http.StatusPreconditionFailed, api.Code == http.StatusConflict:
		e.Kind = ErrConflict
	case api.Code == http.StatusUnauthorized, api.Code == http.StatusForbidden:
		e.Kind = ErrPermission
	case api.Code == http.StatusRequestTimeout, api.Code == http.StatusTooManyRequests, api.Code == http.StatusGone:
		// A page token or an upload that is gone starts again.
	case api.Code >= 400 && api.Code < 500:
		e.Kind = ErrInvalid
	}
	return e
}

// answer returns the message and the reasons of an API error. The client decodes the body of a failed call but not
// that of a failed download.
func answer(e *googleapi.Error) (message string, reasons []string) {
	for _, item := range e.Errors {
		reasons = append(reasons, item.Reason)
	}
	if e.Message != "" {
		return e.Message, reasons
	}
	var body struct {
		Error struct {
			Message string `json:"message"`
			Errors  []struct {
				Reason string `json:"reason"`
			} `json:"errors"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(e.Body), &body); err != nil || body.Error.Message == "" {
		if e.Body != "" {
			return e.Body, reasons
		}
		return http.StatusText(e.Code), reasons
	}
	for _, item := range body.Error.Errors {
		reasons = append(reasons, item.Reason)
	}
	return body.Error.Message, reasons
}

// oneLine makes a text from outside fit into an error.
func oneLine(s string) string {
	const longest = 300
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "..."
	}
	return s
}
