package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"pitstop.internal/scripts/sim/world"
)

// File is a file that was read.
type File struct {
	Name string
	Data []byte
}

// FleetFiles reads a fleet in either of its forms. A JSON list is what gcloud lists; several of them make one fleet. Anything else
// is one file of YAML with project, fleet and capacity, as in the scenarios of events/testdata.
func FleetFiles(files []File) (world.Scenario, error) {
	var all world.Scenario
	var listings [][]world.SliceConfig
	for _, f := range files {
		var s world.Scenario
		var err error
		switch listed := bytes.HasPrefix(bytes.TrimSpace(f.Data), []byte("[")); {
		case listed:
			s, err = listing(f.Data)
		case len(files) > 1:
			err = errors.New("only lists that gcloud writes can be given together; a YAML fleet stands alone")
		default:
			s, err = yamlFleet(f.Data)
		}
		if err == nil && all.Project != "" && s.Project != "" && all.Project != s.Project {
			err = fmt.Errorf("it is of project %s, and a file before is of project %s", s.Project, all.Project)
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w", f.Name, err)
		}
		if all.Project == "" {
			all = s
		}
		listings = append(listings, s.Fleet)
	}
	all.Fleet = Fleets(listings...)
	return all, nil
}

func yamlFleet(data []byte) (world.Scenario, error) {
	s, err := world.Parse(data)
	switch {
	case err != nil:
		return s, fmt.Errorf("it is neither a JSON list that gcloud writes nor YAML with project, fleet and capacity: %w", err)
	case len(s.Fleet)+len(s.Clusters) == 0:
		return s, errors.New("it names no slice")
	}
	return s, nil
}

// listing is the fleet of one JSON list. All that it lists is of one project.
func listing(data []byte) (world.Scenario, error) {
	var s world.Scenario
	fleet, err := Fleet(data)
	if err != nil {
		return s, err
	}
	var named []struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(data, &named); err != nil {
		return s, err
	}
	s.Fleet = fleet
	for _, n := range named {
		_, path, _ := strings.Cut(n.Name, "projects/")
		switch project, _, _ := strings.Cut(path, "/"); {
		case s.Project == "":
			s.Project = project
		case s.Project != project:
			return s, fmt.Errorf("it lists TPUs of the projects %s and %s: give the TPUs of one project", s.Project, project)
		}
	}
	return s, nil
}
