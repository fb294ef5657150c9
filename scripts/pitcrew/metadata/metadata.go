// Package metadata reads the metadata server of a machine: who it is, which TPU it belongs to, and what is announced. It
// waits for changes with hanging requests, because the notice of a preemption is shorter than any polling.
// https://cloud.google.com/compute/docs/metadata/querying-metadata
package metadata

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// DefaultHost is the server's address on a machine of Google's: a name would need DNS.
const DefaultHost = "169.254.169.254"

// HostVariable names another server, as Google's libraries know it.
const HostVariable = "GCE_METADATA_HOST"

// maxBytes bounds an answer: start-up scripts may have 256 KB, and there may be several.
const maxBytes = 8 << 20

// Client asks one metadata server. It holds no state and is safe for concurrent use.
type Client struct {
	base string
	http *http.Client
	// Hang is how long the server may hold a request, Retry the first wait after a failure.
	Hang, Retry time.Duration
}

// New makes a client; host is a name or address, with a port if it is not 80.
func New(host string) *Client {
	return &Client{
		base: "http://" + host + "/computeMetadata/v1/",
		http: &http.Client{Transport: &http.Transport{
			Proxy: nil, // the server is on this machine
			DialContext: (&net.Dialer{
				Timeout: 2 * time.Second, KeepAlive: 30 * time.Second,
			}).DialContext,
			MaxIdleConnsPerHost: 4,
		}},
		Hang: time.Minute, Retry: 500 * time.Millisecond,
	}
}

// Host finds the metadata server: that of the variable, the default one where the machine is Google's, none ("") elsewhere.
// It looks at the machine's description and sends nothing, so that a laptop does not wait for an answer that never comes.
func Host() string {
	if h := os.Getenv(HostVariable); h != "" {
		return h
	}
	for _, path := range []string{"/sys/class/dmi/id/product_name", "/sys/class/dmi/id/sys_vendor"} {
		raw, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(raw), "Google") {
			return DefaultHost
		}
	}
	return ""
}

// ErrNotFound says that the server has no such value.
var ErrNotFound = errors.New("the metadata server has no such value")

// Value is an answer; ETag names it.
type Value struct {
	Text, ETag string
}

// Get reads a value: a path below computeMetadata/v1, with a query if it has one.
func (c *Client) Get(ctx context.Context, path string) (Value, error) {
	return c.call(ctx, http.MethodGet, path, nil)
}

// Put writes a guest attribute: its value is seen by whoever may read the machine.
func (c *Client) Put(ctx context.Context, namespace, key string, value []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := c.call(ctx, http.MethodPut, "instance/guest-attributes/"+namespace+"/"+key, value)
	return err
}

func (c *Client) call(ctx context.Context, method, path string, body []byte) (Value, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return Value{}, err
	}
	req.Header.Set("Metadata-Flavor", "Google")
	res, err := c.http.Do(req)
	if err != nil {
		if call := (*url.Error)(nil); errors.As(err, &call) {
			err = call.Err
		}
		return Value{}, fmt.Errorf("metadata server: %s: %w", path, err)
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(res.Body, maxBytes))
	switch {
	case err != nil:
		return Value{}, fmt.Errorf("metadata server: %s: %w", path, err)
	case res.StatusCode == http.StatusNotFound:
		return Value{}, fmt.Errorf("%w: %s", ErrNotFound, path)
	case res.StatusCode != http.StatusOK:
		return Value{}, fmt.Errorf("metadata server: %s: answer %d", path, res.StatusCode)
	case res.Header.Get("Metadata-Flavor") != "Google":
		return Value{}, fmt.Errorf("metadata server: %s: what answers there is no metadata server", path)
	}
	return Value{Text: string(text), ETag: res.Header.Get("ETag")}, nil
}

// Watch tells every change of a value, and its first reading, until ctx ends. A value that is not there is told as "",
// and what cannot be read is tried again; fail is told of the first failure of a row, and of its end with nil.
func (c *Client) Watch(ctx context.Context, path string, tell func(text string), fail func(error)) {
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	etag, failed := "", false
	var told *string
	wait := c.Retry
	for ctx.Err() == nil {
		query := path
		if etag != "" {
			query += sep + "wait_for_change=true&last_etag=" + url.QueryEscape(etag) + "&timeout_sec=" + strconv.Itoa(max(1, int(c.Hang.Seconds())))
		}
		// A server that is gone without a word is noticed all the same.
		asked := time.Now()
		call, cancel := context.WithTimeout(ctx, c.Hang+10*time.Second)
		v, err := c.Get(call, query)
		cancel()
		missing := errors.Is(err, ErrNotFound)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil, missing:
			if failed {
				failed = false
				fail(nil)
			}
			wait = c.Retry
			news := told == nil || *told != v.Text
			if news {
				told = &v.Text
				tell(v.Text)
			}
			waits := news || v.ETag != etag || time.Since(asked) > c.Retry
			if etag = v.ETag; etag != "" && !missing && waits {
				continue
			}
			// There is nothing to wait on yet, or the server does not wait: look again later.
			pause(ctx, 10*c.Retry)
		default:
			if !failed {
				failed = true
				fail(err)
			}
			etag = "" // the server may be another one: what it has may be new
			pause(ctx, wait)
			wait = min(2*wait, 20*c.Retry)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
