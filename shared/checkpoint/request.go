package checkpoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
)

// RequestName is the object, beside the checkpoints, through which a crew is asked to save. It is a channel equal to
// the node's metadata, and carries the same.
const RequestName = events.RequestObject

// ReadRequest reads the request of a checkpoint directory. Where there is none the error is ErrNotExist, one of a newer
// release is events.ErrNewer, and what is no request ErrMalformed.
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

// WriteRequest puts a request in place. One of the same SaveID is left as it is, so a repetition asks for nothing new;
// any other one is replaced, and which of two is the newer is the caller's to know, by its fence. One of a newer
// release stays, with events.ErrNewer.
func WriteRequest(ctx context.Context, s Store, dir string, r events.CrewRequest) error {
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
		switch p, err := decodeRequest(present.Content); {
		case errors.Is(err, events.ErrNewer):
			return nil, err
		case err == nil && p.SaveID == r.SaveID:
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
