package deployment

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"
)

// TestPermissionsAreAskedOfGoogle holds the calls against Google's paths.
func TestPermissionsAreAskedOfGoogle(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) //nolint:errcheck // what was sent is compared
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.URL.RawQuery+" "+strings.TrimSpace(string(body)))
		if strings.Contains(r.URL.Path, "forbidden") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"error":{"code":403,"message":"you may\n not"}}`)) //nolint:errcheck // the client tells
			return
		}
		_, _ = w.Write([]byte(`{"permissions":["a"]}`)) //nolint:errcheck // likewise
	}))
	defer server.Close()
	a := IAM{Opts: []option.ClientOption{option.WithEndpoint(server.URL + "/"), option.WithoutAuthentication()}}
	for name, ask := range map[string]func(context.Context, string, string, []string) ([]string, error){"demo": a.OnProject, "ckpt": a.OnBucket, "tpu@demo": a.OnAccount} {
		if has, err := ask(t.Context(), "robot", name, []string{"a", "b"}); err != nil || !slices.Equal(has, []string{"a"}) {
			t.Errorf("%s: %v, %v", name, has, err)
		}
	}
	slices.Sort(asked)
	want := []string{
		`GET /b/ckpt/iam/testPermissions alt=json&permissions=a&permissions=b&prettyPrint=false `,
		`POST /v1/projects/-/serviceAccounts/tpu@demo:testIamPermissions alt=json&prettyPrint=false {"permissions":["a","b"]}`,
		`POST /v1/projects/demo:testIamPermissions alt=json&prettyPrint=false {"permissions":["a","b"]}`,
	}
	if d := cmp.Diff(want, asked); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	if _, err := a.OnProject(t.Context(), "robot", "forbidden", []string{"a"}); err == nil || err.Error() != "you may not" {
		t.Errorf("a refusal is %v", err)
	}
}
