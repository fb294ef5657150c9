package google

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"cloud.google.com/go/auth"
)

// fixed is a token that never changes.
type fixed string

// Token implements auth.TokenProvider.
func (f fixed) Token(context.Context) (*auth.Token, error) { return &auth.Token{Value: string(f)}, nil }

func TestTheCallerIsTheAccount(t *testing.T) {
	answer := `{"email":"ada@example.com","scope":"x"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.PostFormValue("access_token") != "secret" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = w.Write([]byte(answer)) //nolint:errcheck // the client tells
	}))
	defer server.Close()
	for file, want := range map[string]string{ //nolint:gosec // they hold names of accounts alone
		`{"type":"service_account","client_email":"robot@demo.iam.gserviceaccount.com"}`:                                                                                                                        "robot@demo.iam.gserviceaccount.com",
		`{"type":"impersonated_service_account","service_account_impersonation_url":"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/as@demo.iam.gserviceaccount.com:generateAccessToken"}`: "as@demo.iam.gserviceaccount.com",
		`{"type":"authorized_user"}`: "ada@example.com",
		``:                           "ada@example.com",
	} {
		got, err := accountOf(t.Context(), auth.NewCredentials(&auth.CredentialsOptions{JSON: []byte(file), TokenProvider: fixed("secret")}), server.Client(), server.URL)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", file, got, err, want)
		}
	}
	answer = `{}`
	if got, err := accountOf(t.Context(), auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: fixed("secret")}), server.Client(), server.URL); err == nil {
		t.Errorf("a token without an account: %q", got)
	}
}
