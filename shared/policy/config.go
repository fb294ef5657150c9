package policy

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Config is the part of a function's environment that says what Pitstop may do.
type Config struct {
	// URI is the policy file, gs:// or file://; empty leaves the presets alone.
	URI string `env:"POLICY_URI" json:"uri,omitzero"`
	// Allow lists the switches that the deployment allows; no policy allows more, and an empty list allows nothing.
	Allow string `env:"ALLOW" json:"allow,omitzero"`
}

// Validate returns every fault of the configuration.
func (c Config) Validate() error {
	_, err := Allow(c.Allow)
	if c.URI != "" && !strings.HasPrefix(c.URI, "gs://") && !strings.HasPrefix(c.URI, "file://") {
		err = errors.Join(err, errors.New("POLICY_URI is neither gs:// nor file://: "+c.URI))
	}
	return err
}

// Source returns the policies of a deployed function.
func (c Config) Source(read func(ctx context.Context, uri string) ([]byte, error)) *Source {
	ceiling, err := Allow(c.Allow)
	if err != nil {
		ceiling = Switches{} // Validate has refused it; what is unclear allows nothing
	}
	return NewSource(c.URI, read, ceiling, time.Now)
}
