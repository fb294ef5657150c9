package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/user"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2/google"
)

// tokenInfo says whose a token is.
// https://cloud.google.com/docs/authentication/token-types#access-contents
const tokenInfo = "https://oauth2.googleapis.com/tokeninfo" //nolint:gosec // an address

// askFor is how long Google is asked who the caller is.
const askFor = 5 * time.Second

// caller is who calls, for those who read it later: the account of the caller's own credentials. Where nobody can tell it is
// the user of this machine, and says so; the database's audit log has the account.
func caller(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	creds, err := gcp.DefaultCredentials(ctx)
	if err == nil {
		var account string
		if account, err = accountOf(ctx, creds, tokenInfo); err == nil {
			return account
		}
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username + " (the user of a machine; the account is not known)"
	}
	return "somebody (the account is not known)"
}

// accountOf is the e-mail of the account behind credentials: as their file says, or else as Google says.
func accountOf(ctx context.Context, creds *google.Credentials, ask string) (string, error) {
	var file struct {
		Email string `json:"client_email"`
		As    string `json:"service_account_impersonation_url"`
	}
	if len(creds.JSON) > 0 && json.Unmarshal(creds.JSON, &file) == nil {
		if file.Email != "" {
			return file.Email, nil
		}
		if _, after, ok := strings.Cut(file.As, "/serviceAccounts/"); ok {
			email, _, _ := strings.Cut(after, ":")
			return email, nil
		}
	}
	token, err := creds.TokenSource.Token()
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, ask, strings.NewReader(url.Values{"access_token": {token.AccessToken}}.Encode()))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	var info struct {
		Email string `json:"email"`
	}
	if err := json.UnmarshalRead(http.MaxBytesReader(nil, resp.Body, 1<<20), &info); err != nil {
		return "", fmt.Errorf("token info: %w", err)
	}
	if info.Email == "" {
		return "", errors.New("token info: the token names no account")
	}
	return info.Email, nil
}
