// Package world is the simulated deployment: the deployed functions, an embedded Pub/Sub, and a simulated cloud with training in it,
// on one clock. It knows nothing of faults and of a judge: it has hooks for them.
package world

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/topology"
)

// Scenario is the world in which entries are replayed: the fleet, the cloud's capacity, the trainings, and the owner's
// actions. Times are RFC 3339.
type Scenario struct {
	// Title says in one line what happens.
	Title string `yaml:"title,omitempty"`
	// About says where the shape of the entries comes from.
	About   string `yaml:"about,omitempty"`
	Project string `yaml:"project,omitempty"`
	// Start is when the clock begins; ten minutes before the first entry when it is not set.
	Start time.Time `yaml:"start,omitempty"`
	// Fleet are the slices that are there at the start.
	Fleet []SliceConfig `yaml:"fleet,omitempty"`
	// Clusters are the clusters of GKE with Jobs that train.
	Clusters []ClusterConfig `yaml:"clusters,omitempty"`
	// Capacity is the number of slices that a zone still gives, or a place in it such as "us-west4-a spot"; a zone that is not named does not
	// offer them.
	Capacity map[string]int `yaml:"capacity,omitempty"`
	// Quota is how many chips the project may hold in a zone; one that is not named has none.
	Quota map[string]int `yaml:"quota,omitempty"`
	// Buckets says in which region a bucket is; one that is not named is in all of the United States.
	Buckets map[string]string `yaml:"buckets,omitempty"`
	// MaintenanceTakes is how long a host maintenance lasts that no entry ends.
	MaintenanceTakes Duration `yaml:"maintenance_takes,omitempty"`
	// Acts are what people do, and what Google does that no entry records.
	Acts []Act `yaml:"acts,omitempty"`
	// Assumed lists the scenario's assumptions, which are not in the entries.
	Assumed []string `yaml:"-"`
	// Babysitters are the principals of older scripts. Their calls are not played, because Pitstop replaces the scripts.
	Babysitters []string `yaml:"-"`
	// Crew is what the crews of slices that follow the record do where it is silent.
	Crew Crew `yaml:"-"`
}

// SliceConfig is one slice of the fleet, and what runs on it.
type SliceConfig struct {
	Name        string    `yaml:"name,omitempty"`
	Zone        string    `yaml:"zone,omitempty"`
	Accelerator string    `yaml:"accelerator,omitempty"`
	Spot        bool      `yaml:"spot,omitempty"`
	ID          int64     `yaml:"id,omitempty"`
	Created     time.Time `yaml:"created,omitempty"`
	// Workers is what the names of its workers have in common: t1v-n-<8 hex>.
	Workers string `yaml:"workers,omitempty"`
	// QueuedResource holds the slice, if one does.
	QueuedResource string `yaml:"queued_resource,omitempty"`
	// RunsFor is how long one life of the slice lasts, as flex-start orders it: at most seven days.
	RunsFor Duration `yaml:"runs_for,omitempty"`
	// Legacy is a TPU Node of the API's former version, and no TPU VM.
	Legacy bool `yaml:"legacy,omitempty"`
	// Policy is the value of the label pitstop-policy, Workload that of pitstop-workload.
	Policy   string `yaml:"policy,omitempty"`
	Workload string `yaml:"workload,omitempty"`
	// Reservation, Disk and Subnetwork are of where the slice is, and nowhere else.
	Reservation string `yaml:"reservation,omitempty"`
	Disk        string `yaml:"disk,omitempty"`
	Subnetwork  string `yaml:"subnetwork,omitempty"`
	// Autocheckpoint says that Google sends SIGTERM to its process, and waits, before it begins maintenance.
	Autocheckpoint bool `yaml:"autocheckpoint,omitempty"`
	// Batch is the global batch of its training, which the crew gets; 0 is none.
	Batch int64 `yaml:"batch,omitempty"`
	// Directory is the checkpoint directory.
	Directory string `yaml:"directory,omitempty"`
	// Follows has the training do what the recorded lines of its crew say. Quiet says that these begin with a start: before it the
	// crew says nothing.
	Follows bool `yaml:"-"`
	// Gone says that it is not there at the start: its owner has deleted it.
	Gone    bool          `yaml:"-"`
	Quiet   bool          `yaml:"-"`
	Crew    CrewConfig    `yaml:"crew,omitempty"`
	Trainer TrainerConfig `yaml:"trainer,omitempty"`
}

// LongestRun is how long a flex-start slice lives at most, and where its order names no shorter time.
const LongestRun = Duration(7 * 24 * time.Hour)

// WorkloadName is the name of what trains on the slice.
func (c SliceConfig) WorkloadName() string { return cmp.Or(c.Workload, c.QueuedResource, c.Name) }

// CrewConfig is the simulated crew of a slice.
type CrewConfig struct {
	Absent bool `yaml:"absent,omitempty"`
	// Restarts is its own budget; Backoff is the time before the first restart, doubled for each further one.
	Restarts int      `yaml:"restarts,omitempty"`
	Backoff  Duration `yaml:"backoff,omitempty"`
	// ReportEvery is how often it reports progress.
	ReportEvery Duration `yaml:"report_every,omitempty"`
	// Refuses is why it cannot save when asked.
	Refuses string `yaml:"refuses,omitempty"`
	// Silent says that it never answers a request.
	Silent bool `yaml:"silent,omitempty"`
}

// TrainerConfig is the simulated training of a slice.
type TrainerConfig struct {
	// Attempt is the number of the attempt at the start, 1 without it. Step is the step then, StepTakes the time of one.
	Attempt   int      `yaml:"attempt,omitempty"`
	Step      int64    `yaml:"step,omitempty"`
	StepTakes Duration `yaml:"step_takes,omitempty"`
	// CheckpointEvery is in steps; SaveTakes is the time of one save.
	CheckpointEvery int64    `yaml:"checkpoint_every,omitempty"`
	SaveTakes       Duration `yaml:"save_takes,omitempty"`
	// StartTakes is the time from the start of the process to its first step.
	StartTakes Duration `yaml:"start_takes,omitempty"`
	// Fails is how the attempts after the first recorded exit end: each after FailsAfter, with this code. 0 does not fail.
	Fails      int      `yaml:"fails,omitempty"`
	FailsAfter Duration `yaml:"fails_after,omitempty"`
	// FailsAnew has the code rise from one to the next.
	FailsAnew bool `yaml:"fails_anew,omitempty"`
	// Sigterm is what the training does on Google's own SIGTERM: it saves itself and exits with 0, or it "dies", or it "ignores" it.
	Sigterm trainingtest.OnSignal `yaml:"sigterm,omitempty"`
	// Torn says that requested saves are never complete.
	Torn bool `yaml:"torn,omitempty"`
}

// Act is something that happens beside the record.
type Act struct {
	At time.Time `yaml:"at,omitempty"`
	By string    `yaml:"by,omitempty"`
	// One of these names a slice.
	Delete string `yaml:"delete,omitempty"`
	Create string `yaml:"create,omitempty"`
	Stop   string `yaml:"stop,omitempty"`
	// Approve says yes to what waits on a workload.
	Approve string `yaml:"approve,omitempty"`
	// Retry orders a retry of a workload that was given up.
	Retry string `yaml:"retry,omitempty"`
	// Stopped has a slice of one worker be found stopped, and no log entry says by whom.
	Stopped string `yaml:"stopped,omitempty"`
	// Hang has the training of a slice stand still without a word.
	Hang string `yaml:"hang,omitempty"`
	// Mend has the training of a slice fail no more.
	Mend string `yaml:"mend,omitempty"`
	// Job names a Job of a cluster, and Does what happens to it then. Silent says that the record has the log entries of that.
	Job    string `yaml:"job,omitempty"`
	Does   JobAct `yaml:"does,omitempty"`
	Silent bool   `yaml:"silent,omitempty"`
	// Starts is when announced maintenance begins, and Movable says that it can be moved. Comes is how long after a loss the next machine
	// comes (4m when not set), and Code the exit code of a Pod.
	Starts  time.Time `yaml:"starts,omitempty"`
	Movable bool      `yaml:"movable,omitempty"`
	Comes   Duration  `yaml:"comes,omitempty"`
	Code    int       `yaml:"code,omitempty"`
	// Preempt, Terminate and Withdraw are Google's acts: a slice is taken back, or ends for good, without a log entry; announced maintenance
	// is withdrawn.
	Preempt   string `yaml:"preempt,omitempty"`
	Terminate string `yaml:"terminate,omitempty"`
	Withdraw  string `yaml:"withdraw,omitempty"`
	// Maintain begins maintenance of a slice that nobody announced. HideGuests blocks the guest attributes of all machines.
	Maintain   string `yaml:"maintain,omitempty"`
	HideGuests bool   `yaml:"hide_guests,omitempty"`
	// Offer names a zone, or a place in it, in which there is room again; Fill names one that has room for no more slices.
	Offer string `yaml:"offer,omitempty"`
	Fill  string `yaml:"fill,omitempty"`
	// Stick has queued resources stay in PROVISIONING for that long, those that come there from now on; 0s has none.
	Stick *Duration `yaml:"stick,omitempty"`
	// Quota names a zone in which the project may hold so many chips from now on.
	Quota string `yaml:"quota,omitempty"`
	Chips int    `yaml:"chips,omitempty"`
}

// Duration is a Go duration in YAML.
type Duration time.Duration

// UnmarshalYAML reads 90s, 10m, 4h.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %.40q is no duration such as 90s or 10m", n.Line, n.Value)
	}
	*d = Duration(v)
	return nil
}

// MarshalYAML writes what UnmarshalYAML reads.
func (d Duration) MarshalYAML() (any, error) { return time.Duration(d).String(), nil }

// Maintenance is how long the slices of the scenario are in maintenance.
func (s Scenario) Maintenance() time.Duration {
	if s.MaintenanceTakes > 0 {
		return time.Duration(s.MaintenanceTakes)
	}
	return maintenanceTakes
}

// Parse reads a scenario file and tells every fault in it.
func Parse(data []byte) (Scenario, error) {
	var s Scenario
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return Scenario{}, fmt.Errorf("scenario: %w", err)
	}
	return s, s.validate()
}

func (s Scenario) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("scenario: "+format, args...)) }
	if s.Project == "" {
		fault("project is missing")
	}
	names := map[string]bool{}
	for _, c := range s.Fleet {
		if c.Name == "" || c.Zone == "" {
			fault("a slice without name or zone")
			continue
		}
		names[c.Name] = true
		if c.Legacy && (c.QueuedResource != "" || c.Directory != "" || c.Reservation+c.Disk+c.Subnetwork != "") {
			fault("slice %s: a legacy node has no queued resource, no directory, no reservation, no disk and no subnetwork", c.Name)
		}
		if d := c.RunsFor; d < 0 || d > LongestRun || d > 0 && (c.Spot || c.Legacy || c.Reservation != "") {
			fault("slice %s: runs_for is at most 168h, and of no Spot, no legacy node and no reservation", c.Name)
		}
		if s := c.Trainer.Sigterm; s != trainingtest.SavesItself && s != trainingtest.Dies && s != trainingtest.IgnoresSignal {
			fault("slice %s: sigterm %.40q is neither %s nor %s", c.Name, s, trainingtest.Dies, trainingtest.IgnoresSignal)
		}
		if _, err := topology.Parse(c.Accelerator); err != nil {
			fault("slice %s: %v", c.Name, err)
		}
	}
	for _, c := range s.Clusters {
		faults = append(faults, c.faults()...)
	}
	places := slices.Sorted(maps.Keys(s.Capacity))
	for _, a := range s.Acts {
		places = append(places, a.Offer, a.Fill)
	}
	for _, text := range places {
		if _, err := cloudtputest.ParsePlace(text); err != nil {
			fault("%v", err)
		}
	}
	for _, a := range s.Acts {
		if a.At.IsZero() {
			fault("an act without a time")
		}
		for _, n := range []string{a.Delete, a.Create, a.Stop, a.Stopped, a.Hang, a.Mend, a.Preempt, a.Terminate, a.Withdraw, a.Maintain} {
			if n != "" && !names[n] {
				fault("an act names %s, which is not in the fleet", n)
			}
		}
		if a.Job != "" || a.Does != "" {
			faults = append(faults, a.jobFaults(s.Clusters)...)
		}
	}
	return errors.Join(faults...)
}

// Zones are those of the capacity and of the fleet.
func (s Scenario) Zones() []string {
	var zones []string
	for text := range s.Capacity {
		if at, err := cloudtputest.ParsePlace(text); err == nil {
			zones = append(zones, at.Zone)
		}
	}
	for _, c := range s.Fleet {
		zones = append(zones, c.Zone)
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// Crew is what the crew of a slice does where the record is silent about it.
type Crew string

// A crew goes on as the record showed it last: after an exit it fails again in the same way, otherwise it trains. Or the user says
// that there is none, that every later attempt fails, or that every later attempt trains.
const (
	CrewAsRecorded Crew = ""
	CrewNone       Crew = "none"
	CrewFails      Crew = "fails"
	CrewRecovers   Crew = "recovers"
)

// Crews are the words for what a crew does.
func Crews() []string { return []string{string(CrewNone), string(CrewFails), string(CrewRecovers)} }

// Provided completes a listed fleet for a simulation, and returns its assumptions. A list says nothing of capacity and of crews.
func (s Scenario) Provided() (_ Scenario, assumed []string) {
	if s.Capacity != nil || len(s.Fleet) == 0 {
		return s, nil
	}
	s.Capacity, s.Fleet = map[string]int{}, slices.Clone(s.Fleet)
	first := map[string]bool{}
	for i := range s.Fleet {
		c := &s.Fleet[i]
		s.Capacity[c.Zone] = -1
		if c.Legacy {
			c.Crew.Absent = true
		}
		if first[c.WorkloadName()] { // the first slice of a Multislice speaks for all
			c.Crew.Absent, c.Directory = true, ""
		}
		first[c.WorkloadName()] = true
	}
	return s, []string{
		"the list names no capacity, so every zone of the fleet always has some", "each workload has a crew, except on legacy TPU Nodes",
	}
}
