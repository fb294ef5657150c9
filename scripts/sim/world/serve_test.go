package world

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// pageSends sends what a page of a browser can, and returns the code of the answer and its text.
func pageSends(t *testing.T, url string) (code int, says string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "text/plain")
	r.Header.Set("Origin", "https://evil.example")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestNoPageReachesAFunctionOrACluster that a world serves on loopback. Its own messages do.
func TestNoPageReachesAFunctionOrACluster(t *testing.T) {
	const refused = "a page of a browser sent this"
	framework, err := Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := newClustered(t, JobConfig{Name: "llama", Pool: "spot"})
	url, _, err := w.reached(true)
	if err != nil {
		t.Fatal(err)
	}
	if code, says := pageSends(t, url+"/api/v1/namespaces"); code != http.StatusForbidden || !strings.HasPrefix(says, refused) {
		t.Errorf("the cluster: answer %d %q", code, says)
	}
	served := New("served", w.Scenario, Options{Framework: framework})
	if err := served.Found(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, f := range Functions {
		if code, says := pageSends(t, framework+"/"+f.Entry); code != http.StatusForbidden || !strings.HasPrefix(says, refused) {
			t.Errorf("%s: answer %d %q", f.Entry, code, says)
		}
		if code := served.post(context.Background(), f.Entry, []byte("{}")); code == http.StatusForbidden {
			t.Errorf("%s refuses its own messages", f.Entry)
		}
	}
}
