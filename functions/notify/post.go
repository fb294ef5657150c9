package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"pitstop.internal/shared/fault"
)

// timeout bounds one call of a target.
const timeout = 15 * time.Second

// maxAnswer is how much of an answer is read.
const maxAnswer = 64 << 10

// errUnsure marks a call of which nobody knows whether it arrived.
var errUnsure = errors.New("nobody knows whether it arrived")

// errPerhaps marks a call that was answered by what does not say whether it arrived.
var errPerhaps = errors.New("perhaps it arrived")

// laterError says that a target takes nothing for a while.
type laterError struct {
	error
	after time.Duration
}

// newClient makes the client of a target. It follows no redirection: a message goes where its owner has said, or nowhere.
func newClient() *http.Client {
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// post sends a JSON body and returns the answer to it. An address may hold a secret, so no error names it. A refusal that no
// repetition mends is fault.Permanent, one that names a time a laterError; where the body was sent and no answer came, the error is
// errUnsure, and errPerhaps where a gateway answered that it has none.
func post(ctx context.Context, c *http.Client, address string, header http.Header, body []byte) (http.Header, []byte, error) {
	var wrote atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, nil, fault.Permanentf("the address cannot be called")
	}
	for key, values := range header {
		r.Header[key] = values
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Set("User-Agent", "pitstop")
	resp, err := c.Do(r)
	if err != nil {
		err = bare(err)
		if wrote.Load() {
			err = fmt.Errorf("%w: %w", errUnsure, err)
		}
		return nil, nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read as far as it counts
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp.Header, answer, nil // what it did not say is not waited for
	}
	if err != nil {
		answer = nil
	}
	return resp.Header, answer, refusal(resp.StatusCode, resp.Header, answer)
}

// bare is what is wrong with a call, without the address that was called.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return fmt.Errorf("%s: %w", op.Op, op.Err)
	}
	return err
}

// refusal sorts an answer that is no success by what a repetition can do about it.
func refusal(status int, header http.Header, answer []byte) error {
	err := fmt.Errorf("status %d: %s", status, short(answer))
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && header.Get("Retry-After") != "":
		return laterError{err, retryAfter(header)}
	case status == http.StatusBadGateway, status == http.StatusGatewayTimeout: // who stands behind it may have taken the message
		return fmt.Errorf("%w: %w", errPerhaps, err)
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status >= 500:
		return err
	}
	return fault.Permanent(err)
}

// retryAfter is how long a target wants to be left alone: as it says in seconds, else a minute; never for longer than an hour.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 1 {
		return time.Minute
	}
	return min(time.Duration(seconds)*time.Second, time.Hour)
}

// short is what a target says, for a log.
func short(answer []byte) string {
	const most = 200
	s := line(string(answer[:min(len(answer), 4*most)]))
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return orElse(s, "no text")
}
