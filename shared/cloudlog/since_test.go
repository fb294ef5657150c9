package cloudlog_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

func TestALogIsReadPageByPage(t *testing.T) {
	var asked []struct{ Filter, OrderBy, PageToken string }
	endless := false
	l := writer(t, func(rw http.ResponseWriter, r *http.Request) {
		var q struct{ Filter, OrderBy, PageToken string }
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || r.URL.Path != "/v2/entries:list" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		asked = append(asked, q)
		next := ""
		if q.PageToken == "" || endless {
			next = `,"nextPageToken":"two"`
		}
		_, _ = rw.Write([]byte(`{"entries":[{"insertId":"e` + q.PageToken + `"}]` + next + `}`)) //nolint:errcheck // the caller notices
	})
	got, err := l.Since(t.Context(), "demo", `a OR b`, at)
	if err != nil || len(got) != 2 || !strings.Contains(string(got[1]), `"etwo"`) {
		t.Errorf("%s, %v", got, err)
	}
	if len(asked) != 2 || asked[0].Filter != `timestamp>="2026-03-01T12:00:00.123456789Z" AND (a OR b)` || asked[0].OrderBy != "timestamp asc" || asked[1].PageToken != "two" {
		t.Errorf("asked was %+v", asked)
	}
	endless = true
	if got, err := l.Since(t.Context(), "demo", "a", at); err == nil || len(got) == 0 || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a log without an end: %d, %v", len(got), err)
	}
}
