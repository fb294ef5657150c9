package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
)

// RequestName is the object, next to the checkpoints, that asks a crew to save. It is a second channel with the same content
// as the node's metadata.
const RequestName = events.RequestObject

// ReadRequest reads the request of a checkpoint directory. Without a request the error is ErrNotExist, for one of a newer
// release events.ErrNewer, and for any other content ErrMalformed.
func ReadRequest(ctx context.Context, s Store, dir string) (events.CrewRequest, error) {
	uri := Join(dir, RequestName)
	o, err := s.Get(ctx, uri)
	if err != nil {
		return events.CrewRequest{}, err
	}
	r, err := decodeRequest(o.Content)
	if err != nil {
		return events.CrewRequest{}, fmt.Errorf("%s: %w", uri, err)
	}
	return r, nil
}

// WriteRequest puts a request in place. A stored request with the same SaveID stays, so a repetition is harmless. Any other
// request of the workload is replaced: the caller's fence must ensure that the new one is newer. A request of another workload
// stays with ErrForeign while its crew may still save, which is until its deadline. One of a newer release stays with
// events.ErrNewer.
func WriteRequest(ctx context.Context, s Store, dir string, r events.CrewRequest, now time.Time) error {
	r.Schema = events.Schema
	content, err := json.Marshal(r)
	if err == nil {
		_, err = events.DecodeCrewRequest(content)
	}
	if err != nil {
		return fmt.Errorf("crew request: %s: %w", oneLine(err.Error()), ErrInvalid)
	}
	return change(ctx, s, Join(dir, RequestName), func(present Object) ([]byte, error) {
		if present.Content == nil {
			return content, nil
		}
		p, err := decodeRequest(present.Content) // of one that is malformed nothing is left, so it is replaced
		switch {
		case errors.Is(err, events.ErrNewer):
			return nil, err
		case p.Workload != "" && p.Workload != r.Workload && (p.By.IsZero() || now.Before(p.By)):
			until := "without a deadline"
			if !p.By.IsZero() {
				until = "until " + clock(p.By)
			}
			return nil, foreign(p.Workload, "waits for a save "+until, r.Workload)
		case p.SaveID == r.SaveID:
			return nil, nil
		}
		return content, nil
	})
}

func decodeRequest(data []byte) (events.CrewRequest, error) {
	if err := checkSchema("crew request", data); err != nil {
		return events.CrewRequest{}, err
	}
	r, err := events.DecodeCrewRequest(data)
	if err != nil {
		return events.CrewRequest{}, malformed("crew request", err)
	}
	return r, nil
}
