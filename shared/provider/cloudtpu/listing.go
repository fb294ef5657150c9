package cloudtpu

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/api/googleapi"
)

// lister reads listings page by page. A listing mostly repeats the one of a minute ago, so an item is decoded only when its text is
// new; otherwise it is the same item again. The generated client would decode ten thousand nodes each minute.
type lister[T any] struct {
	client *http.Client
	base   string // the address of the API, with its version
	field  string // the field that holds the items, and the last part of the path

	mu   sync.Mutex
	seen map[string]*recall[T]
}

// recall is the memory of one parent.
type recall[T any] struct {
	turn int // counts the listings
	of   map[string]*recalled[T]
}

type recalled[T any] struct {
	item *T
	turn int // the last listing that showed it
}

// page reads one page of what a parent holds. Errors are those of the generated client.
func (l *lister[T]) page(ctx context.Context, parent, token string) (items []*T, next string, unreachable []string, err error) {
	query := url.Values{"alt": {"json"}, "pageToken": {token}, "prettyPrint": {"false"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.base+parent+"/"+l.field+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, "", nil, fmt.Errorf("list %s: %w", l.field, err)
	}
	req.Header.Set("User-Agent", googleapi.UserAgent)
	resp, err := l.client.Do(req) //nolint:bodyclose // CloseBody does it
	if err != nil {
		return nil, "", nil, err //nolint:wrapcheck // classified by the caller, as the generated client's
	}
	defer googleapi.CloseBody(resp)
	if err := googleapi.CheckResponse(resp); err != nil {
		return nil, "", nil, err //nolint:wrapcheck // likewise
	}
	var body bytes.Buffer
	if n := resp.ContentLength; n > 0 {
		body.Grow(int(n) + bytes.MinRead)
	}
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return nil, "", nil, fmt.Errorf("list %s: %w", l.field, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decode(&body, parent, token)
}

// decode reads the items of a page, and forgets those of former listings once the last page is read.
func (l *lister[T]) decode(body *bytes.Buffer, parent, token string) (items []*T, next string, unreachable []string, err error) {
	known := l.seen[parent]
	if known == nil {
		known = &recall[T]{of: map[string]*recalled[T]{}}
		if l.seen == nil {
			l.seen = map[string]*recall[T]{}
		}
		l.seen[parent] = known
	}
	if token == "" {
		known.turn++
	}
	err = members(body, func(d *jsontext.Decoder, name string) error {
		switch name {
		case l.field:
			return elements(d, func(text []byte) error {
				item, err := known.item(text)
				items = append(items, item)
				return err
			})
		case "nextPageToken":
			return json.UnmarshalDecode(d, &next)
		case "unreachable":
			return json.UnmarshalDecode(d, &unreachable)
		}
		return d.SkipValue()
	})
	if err != nil {
		return nil, "", nil, fmt.Errorf("list %s: %w", l.field, err)
	}
	if next == "" {
		known.forget()
	}
	return items, next, unreachable, nil
}

// item is the item that a text stands for.
func (r *recall[T]) item(text []byte) (*T, error) {
	if known := r.of[string(text)]; known != nil {
		known.turn = r.turn
		return known.item, nil
	}
	item := new(T)
	if err := stdjson.Unmarshal(text, item); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	r.of[string(text)] = &recalled[T]{item, r.turn}
	return item, nil
}

// forget drops what the last listing did not show.
func (r *recall[T]) forget() {
	for text, known := range r.of {
		if known.turn != r.turn {
			delete(r.of, text)
		}
	}
}

// members hands the name of each member of a JSON object to read, which reads the value.
func members(body *bytes.Buffer, read func(d *jsontext.Decoder, name string) error) error {
	d := jsontext.NewDecoder(body, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != jsontext.KindBeginObject {
		return fmt.Errorf("the answer is not an object: %w", err)
	}
	for d.PeekKind() != jsontext.KindEndObject {
		t, err := d.ReadToken()
		if err != nil {
			return err //nolint:wrapcheck // the caller says what was read
		}
		if err := read(d, t.String()); err != nil {
			return err
		}
	}
	return nil
}

// elements hands the text of each element of a JSON array to read. There is none in null.
func elements(d *jsontext.Decoder, read func(text []byte) error) error {
	t, err := d.ReadToken()
	if err != nil || t.Kind() == jsontext.KindNull {
		return err //nolint:wrapcheck // likewise
	}
	if t.Kind() != jsontext.KindBeginArray {
		return fmt.Errorf("%s is not an array", t)
	}
	for d.PeekKind() != jsontext.KindEndArray {
		text, err := d.ReadValue()
		if err != nil {
			return err //nolint:wrapcheck // likewise
		}
		if err := read(text); err != nil {
			return err
		}
	}
	_, err = d.ReadToken()
	return err //nolint:wrapcheck // likewise
}
