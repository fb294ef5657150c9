// Package signin knows who makes a request, by the signature of Google's sign-in (Identity-Aware Proxy). It takes nobody's word for it: whoever
// reaches a service past the sign-in has no signature.
package signin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"google.golang.org/api/idtoken"
	"google.golang.org/api/option"
)

// What Google's sign-in says of a request, and who says it.
// https://cloud.google.com/iap/docs/signed-headers-howto
const (
	assertion = "X-Goog-IAP-JWT-Assertion"
	issuer    = "https://cloud.google.com/iap"
)

// signatureLength is that of a signature of the sign-in, as a token has it: the 64 bytes of ES256 in base64url.
const signatureLength = 86

// keysWithin bounds how long Google is asked for the keys of its sign-in.
const keysWithin = 10 * time.Second

// SignIn is the sign-in before one service.
type SignIn struct {
	// audience is the one service that the sign-in is for.
	audience string
	validate func(ctx context.Context, token, audience string) (*idtoken.Payload, error)
	log      *slog.Logger
}

// New is the sign-in before the service of an audience. It reads Google's keys through a client, or through one of its own where that is nil, and
// keeps them for as long as Google says.
func New(ctx context.Context, audience string, client *http.Client, log *slog.Logger) (*SignIn, error) {
	if client == nil {
		client = &http.Client{Timeout: keysWithin}
	}
	v, err := idtoken.NewValidator(ctx, option.WithHTTPClient(client))
	if err != nil {
		return nil, err
	}
	return &SignIn{audience: audience, validate: v.Validate, log: log}, nil
}

type personKey struct{}

// Only lets in whom Google has signed in.
func (s *SignIn) Only(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		person, err := s.person(r)
		if err != nil {
			s.log.WarnContext(r.Context(), "identity refused", "path", r.URL.Path, "error", err.Error())
			http.Error(w, "Pitstop does not know you: open this page through Google's sign-in", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), personKey{}, person)))
	})
}

// person is the e-mail address of the one who is signed in. Google signs tokens of other kinds too, with an audience of anybody's choice: only
// those of the sign-in count.
func (s *SignIn) person(r *http.Request) (string, error) {
	all := r.Header.Values(assertion)
	if len(all) != 1 {
		return "", errors.New("the request has no identity, or several")
	}
	if signature := all[0][strings.LastIndexByte(all[0], '.')+1:]; len(signature) != signatureLength {
		return "", errors.New("the identity has no signature of the sign-in") // the validator panics at one that is too short
	}
	p, err := s.validate(r.Context(), all[0], s.audience)
	switch {
	case err != nil:
		return "", err
	case p.Issuer != issuer:
		return "", errors.New("the identity is of another issuer: " + p.Issuer)
	}
	email, _ := p.Claims["email"].(string)
	if email == "" {
		return "", errors.New("the identity has no e-mail address")
	}
	return email, nil
}

// Person is the e-mail address of the one whom Only has let in.
func Person(r *http.Request) (string, error) {
	person, ok := r.Context().Value(personKey{}).(string)
	if !ok {
		return "", errors.New("nobody is signed in")
	}
	return person, nil
}
