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

// errUnsure marks a call without an answer: it may or may not have arrived.
var errUnsure = errors.New("it may or may not have arrived")

// errPerhaps marks a call whose answer leaves open whether it arrived.
var errPerhaps = errors.New("the answer leaves open whether it arrived")

// laterError says that a target takes nothing for a while.
type laterError struct {
	error
	after time.Duration
}

// newClient makes the client of a target. It follows no redirection: a message goes only to the configured address.
func newClient() *http.Client {
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// post sends a JSON body and returns the answer to it. An address may hold a secret, so no error names it. A refusal that a
// retry cannot mend is fault.Permanent; one that names a time to wait is a laterError. If the body was sent and no answer
// came, the error is errUnsure. If a gateway got no answer from the target, it is errPerhaps.
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
	defer resp.Body.Close() //nolint:errcheck // the part that counts was read
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp.Header, answer, nil // the success counts, even if the body was cut off
	}
	if err != nil {
		answer = nil
	}
	return resp.Header, answer, refusal(resp.StatusCode, resp.Header, answer)
}

// bare is the error of a call without the address.
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

// refusal classifies a failed answer by whether a retry can help.
func refusal(status int, header http.Header, answer []byte) error {
	err := fmt.Errorf("status %d: %s", status, short(answer))
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && header.Get("Retry-After") != "":
		return laterError{err, retryAfter(header)}
	case status == http.StatusBadGateway, status == http.StatusGatewayTimeout: // the target behind the gateway may have taken the message
		return fmt.Errorf("%w: %w", errPerhaps, err)
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status >= 500:
		return err
	}
	return fault.Permanent(err)
}

// retryAfter is how long a target asks to be left alone: its own number of seconds, else a minute, and never more than an
// hour.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 1 {
		return time.Minute
	}
	return min(time.Duration(seconds)*time.Second, time.Hour)
}

// short is the start of an answer, for a log.
func short(answer []byte) string {
	const most = 200
	s := line(string(answer[:min(len(answer), 4*most)]))
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return orElse(s, "no text")
}
