package tpu

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
)

// StartUp is what a specification says of how a new machine begins. The script itself is never told: it may hold secrets.
type StartUp struct {
	// Script says that there is a start-up script, Crew that it calls pitcrew. Of one that is kept elsewhere, at URL, nothing
	// more is known.
	Script, Crew bool
	URL          string
	// Legacy says that it is a legacy node, which runs no script: what trains on it is a machine of its owner's, which connects to it.
	Legacy bool
	// Account is the service account that the machine runs as; empty is the project's default one.
	Account string
}

// StartUpOf reads how a machine begins that is created from a specification.
// https://cloud.google.com/compute/docs/instances/startup-scripts/linux
func StartUpOf(spec []byte) (StartUp, error) {
	var whole struct {
		Node *struct {
			Metadata       map[string]string `json:"metadata"`
			ServiceAccount struct {
				Email string `json:"email"`
			} `json:"serviceAccount"`
		} `json:"node"`
		Legacy *struct{} `json:"legacy_node"`
	}
	switch err := json.Unmarshal(spec, &whole); {
	case err != nil:
		return StartUp{}, fmt.Errorf("specification: %w", err)
	case whole.Legacy != nil:
		return StartUp{Legacy: true}, nil
	case whole.Node == nil:
		return StartUp{}, errors.New("specification: it has no node")
	}
	script := whole.Node.Metadata["startup-script"]
	url := whole.Node.Metadata["startup-script-url"]
	return StartUp{
		Script: strings.TrimSpace(script) != "" || url != "", Crew: strings.Contains(script, "pitcrew"), URL: url, Account: whole.Node.ServiceAccount.Email,
	}, nil
}
