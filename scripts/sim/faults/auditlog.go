package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"pitstop.internal/scripts/sim/world"
)

// audit makes the functions' audit log fail. An entry in the log stays there, even if it was lost on its way to the topic.
func (c *Chaos) audit(inner http.RoundTripper) http.RoundTripper {
	return world.RoundTripper(func(r *http.Request) (*http.Response, error) {
		inst := world.InstanceOf(r.Context())
		if inst == nil {
			return inner.RoundTrip(r)
		}
		const what = "the audit log"
		d := call(inst, what, asked(r))
		if err := c.effect(r.Context(), d, what); err != nil {
			return nil, err
		}
		switch {
		case c.happens(d.Of("refused"), c.APIRefused, "%s refuses to be read", what):
			return refusal{http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "Quota exceeded for quota metric 'Read requests'"}.Answer(r), nil
		case c.happens(d.Of("lost"), c.APILost, "a question never reaches %s", what):
			return nil, errDown
		}
		resp, err := inner.RoundTrip(r)
		if err != nil {
			return resp, fmt.Errorf("scenario: %w", err)
		}
		if c.happens(d.Of("answer lost"), c.APIAnswerLost, "the answer of %s is lost", what) {
			return nil, errors.Join(errDown, resp.Body.Close())
		}
		return resp, nil
	})
}

// asked is what a question to the audit log is about: its filter without the time from which on it searches.
func asked(r *http.Request) string {
	var question struct{ Filter string }
	body, err := r.GetBody()
	if err == nil {
		err = json.NewDecoder(body).Decode(&question)
	}
	if err != nil {
		panic(fmt.Sprintf("scenario: a question to the audit log: %v", err)) // the client makes it of bytes
	}
	_, about, _ := strings.Cut(question.Filter, " AND ")
	return about
}
