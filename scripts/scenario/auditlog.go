package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// audit has the audit log of the functions go wrong. What is in the log stays there, whatever became of it on its way to the
// topic.
func (c *chaos) audit(inner http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if c == nil || instanceOf(r.Context()) == nil {
			return inner.RoundTrip(r)
		}
		const what = "the audit log"
		if err := c.effect(r.Context(), what); err != nil {
			return nil, err
		}
		switch {
		case c.happens(c.APIRefused, "%s refuses to be read", what):
			const body = `{"error":{"code":429,"message":"Quota exceeded for quota metric 'Read requests'","status":"RESOURCE_EXHAUSTED"}}`
			return &http.Response{
				StatusCode: http.StatusTooManyRequests, Status: "429 Too Many Requests", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
				Header: http.Header{"Content-Type": {"application/json; charset=UTF-8"}}, Body: io.NopCloser(bytes.NewReader([]byte(body))),
			}, nil
		case c.happens(c.APILost, "a question never reaches %s", what):
			return nil, errDown
		}
		resp, err := inner.RoundTrip(r)
		if err != nil {
			return resp, fmt.Errorf("scenario: %w", err)
		}
		if c.happens(c.APIAnswerLost, "the answer of %s is lost", what) {
			return nil, errors.Join(errDown, resp.Body.Close())
		}
		return resp, nil
	})
}
