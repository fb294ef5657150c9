package cloudtpu

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	api "google.golang.org/api/tpu/v2alpha1"
)

// pages answers one request after the other with these bodies.
type pagesOf []string

func (p *pagesOf) RoundTrip(r *http.Request) (*http.Response, error) {
	body := (*p)[0]
	*p = (*p)[1:]
	return &http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}, nil
}

// TestAListingDecodesOnlyWhatIsNew: an item with the same text is the same item, one with another text is not, and what a listing
// does not show any more is forgotten.
func TestAListingDecodesOnlyWhatIsNew(t *testing.T) {
	answers := pagesOf{
		`{"nodes":[{"name":"a","state":"READY"},{"name":"b","state":"READY"}],"nextPageToken":"2"}`,
		`{"unreachable":["x"],"nodes":[{"name":"c","labels":{"k":"v"}}],"later":{"nodes":[1]}}`,
		`{"nodes":[{"name":"a","state":"READY"},{"name":"b","state":"PREEMPTED"}]}`,
		`{"nodes":null}`,
		`{"nodes":[{"name":"a","state":"READY"}]}`,
	}
	l := lister[api.Node]{client: &http.Client{Transport: &answers}, base: "https://tpu.googleapis.com/v2alpha1/", field: "nodes"}
	list := func(token string) []*api.Node {
		t.Helper()
		items, _, _, err := l.page(context.Background(), "projects/p/locations/z", token)
		must(t, err)
		return items
	}
	first := list("")
	second, next, unreachable, err := l.page(context.Background(), "projects/p/locations/z", "2")
	if err != nil || next != "" || len(unreachable) != 1 || len(second) != 1 || second[0].Labels["k"] != "v" {
		t.Fatalf("the second page is %v, %q, %v, %v", second, next, unreachable, err)
	}
	third := list("")
	if third[0] != first[0] || third[1] == first[1] || third[1].State != "PREEMPTED" || first[1].State != "READY" {
		t.Errorf("%+v, and then %+v", first, third)
	}
	if n := len(l.seen["projects/p/locations/z"].of); n != 2 {
		t.Errorf("%d items are remembered, and 2 are there", n)
	}
	if none := list(""); len(none) != 0 {
		t.Errorf("null holds %v", none)
	}
	if again := list(""); again[0] == first[0] || again[0].Name != "a" {
		t.Errorf("an item that had gone is %+v", again[0])
	}
}

func TestAListingThatIsNoneIsAnError(t *testing.T) {
	for _, body := range []string{``, `[]`, `{"nodes":{}}`, `{"nodes":[{"name":1}]}`, `{"nodes":[{}`, `{"nextPageToken":3}`, `{"nodes":[]`} {
		l := lister[api.Node]{field: "nodes"}
		if items, _, _, err := l.decode(bytes.NewBufferString(body), "p", ""); err == nil {
			t.Errorf("%s is read as %v", body, items)
		}
	}
}

// FuzzListing: whatever the API answers, it is read or refused, and the same text is the same item.
func FuzzListing(f *testing.F) {
	for _, body := range []string{
		`{"nodes":[{"name":"a"},{"name":"b","metadata":{"k":"v"}}],"nextPageToken":"2","unreachable":["z"]}`, `{"nodes":null}`, `{}`, `[`, `{"nodes":[{"id":"7"}]}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		l := lister[api.Node]{field: "nodes"}
		first, _, _, err := l.decode(bytes.NewBuffer(bytes.Clone(body)), "p", "1") // a later page forgets nothing
		if err != nil {
			return
		}
		again, _, _, err := l.decode(bytes.NewBuffer(bytes.Clone(body)), "p", "1")
		if err != nil || len(again) != len(first) {
			t.Fatalf("%d items, and then %d: %v", len(first), len(again), err)
		}
		for i := range first {
			if first[i] != again[i] {
				t.Fatalf("item %d is another one", i)
			}
		}
	})
}
