package cloudtpu

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
)

// StartUp describes how a new machine of a specification starts. It never holds the script itself, which may contain
// secrets.
type StartUp struct {
	// Script says that there is a start-up script, Crew that it calls pitcrew. A script stored elsewhere is known only by its
	// URL.
	Script, Crew bool
	URL          string
	// Legacy says that it is a legacy node, which runs no script: a machine of its owner connects to it and trains.
	Legacy bool
	// Autocheckpoint says that Google sends SIGTERM to the training before maintenance begins, and waits for its end.
	Autocheckpoint bool
	// Account is the service account that the machine runs as; empty is the project's default one.
	Account string
}

// A machine's start-up is in its metadata under these keys; crewWord in a script starts the crew.
const (
	scriptKey    = "startup-script"
	scriptURLKey = "startup-script-url"
	crewWord     = "pitcrew"
)

// StartUpOf reads how a machine of a specification starts, whether or not the specification holds its metadata values.
// https://cloud.google.com/compute/docs/instances/startup-scripts/linux
func StartUpOf(spec []byte) (StartUp, error) {
	var whole struct {
		Node *struct {
			Metadata       map[string]string `json:"metadata"`
			Autocheckpoint bool              `json:"autocheckpointEnabled"`
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
	script := whole.Node.Metadata[scriptKey]
	url := whole.Node.Metadata[scriptURLKey]
	return StartUp{
		Script: strings.TrimSpace(script) != "" || url != "", Crew: strings.Contains(script, crewWord), URL: url, Account: whole.Node.ServiceAccount.Email,
		Autocheckpoint: whole.Node.Autocheckpoint,
	}, nil
}
