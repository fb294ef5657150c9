package google

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/user"
	"strings"
	"time"

	"cloud.google.com/go/auth"
	"github.com/go-json-experiment/json"
)

// tokenInfo names the account of a token.
// https://cloud.google.com/docs/authentication/token-types#access-contents
const tokenInfo = "https://oauth2.googleapis.com/tokeninfo" //nolint:gosec // an address

// askFor is how long Google is asked for the caller's account. The verb goes on without it.
const askFor = 5 * time.Second

// NameCaller is the caller, for people who read the record later: the account of the caller's credentials. If Google does not name it, it
// is the user of this machine, and says so; the database's audit log has the account.
func (g *Connection) NameCaller(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, AtMostHalfOfTimeout(ctx, askFor))
	defer cancel()
	if account, err := g.account(ctx); err == nil {
		return account
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username + " (the user of a machine; the account is not known)"
	}
	return "somebody (the account is not known)"
}

func (g *Connection) account(ctx context.Context) (string, error) {
	creds, err := g.credentials(ctx)
	if err != nil {
		return "", err
	}
	account, err := accountOf(ctx, creds, g.plain(), tokenInfo)
	if err != nil {
		return "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.as = account
	return account, nil
}

// accountOf is the e-mail of the account of credentials: as their file says, or else as Google says.
func accountOf(ctx context.Context, creds *auth.Credentials, client *http.Client, ask string) (string, error) {
	if account := accountIn(creds.JSON()); account != "" {
		return account, nil
	}
	token, err := creds.Token(ctx)
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, ask, strings.NewReader(url.Values{"access_token": {token.Value}}.Encode()))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(r)
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
