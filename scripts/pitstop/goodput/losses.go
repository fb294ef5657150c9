// Package goodput reads from log entries alone what happened to TPUs and to the time of their trainings. It lists each loss, its
// cause, the time until the TPU was back, and who brought it back. It adds up the chip-hours lost, finds the queued resources left
// over, and counts the losses that a notice announced in time. It cuts the time of each workload into uses, of which each moment
// has one.
//
// It is pure: entries go in one after another in the order of their times, and the report comes out at the end. Its memory is bounded by
// the workloads, the slices and the losses, not by the entries: it grows with each loss, since the report lists them all.
package goodput

import (
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/reason"
)

// Outcome is how a loss ended, as far as the logs tell.
type Outcome string

// The outcomes of a loss.
const (
	// Back: an entry shows the slice again. Gap is the time from the loss to that entry.
	Back Outcome = "back"
	// BackUnseen: it was back at a time that no entry names. It was terminated again, or created again, so it was there in
	// between.
	BackUnseen Outcome = "back_unseen"
	// GivenUp: its owner deleted it afterwards, and nobody created it again.
	GivenUp Outcome = "given_up"
	// NotBack: it was not back when the record ended, or not under its name.
	NotBack Outcome = "not_back"
	// NotTold: entries name only its workers. A new TPU has new workers, so no entry can say whether it was back.
	NotTold Outcome = "not_told"
)

// By is who brought a slice back, or took it down.
type By string

// Who acts. A principal is an owner unless something else is known of it.
const (
	ByGoogle     By = "google"
	ByPitstop    By = "pitstop"
	ByBabysitter By = "babysitter"
	ByOwner      By = "owner"
	// ByCluster is a controller of a cluster, such as that of JobSets.
	ByCluster By = "cluster"
	// ByNobody: the slice was seen again and no entry says who created it.
	ByNobody By = "not_told"
)

// Who names whom the principals of a record belong to.
type Who struct {
	// Babysitters are the principals of older scripts. Pitstop are those of Pitstop; where none is named it is every
	// service account whose name is pitstop or begins with pitstop-.
	Babysitters, Pitstop []string
}

func (w Who) is(c events.Call) By {
	if (events.Accounts{Ours: w.Babysitters}).Party(c) == events.PartyOurs {
		return ByBabysitter
	}
	party := (events.Accounts{Ours: w.Pitstop}).Party(c)
	if party != events.PartyOwner {
		return map[events.Party]By{events.PartyOurs: ByPitstop, events.PartyGoogle: ByGoogle, events.PartyController: ByCluster, events.PartyNobody: ByNobody}[party]
	}
	name, domain, _ := strings.Cut(c.Principal, "@")
	if len(w.Pitstop) == 0 && (name == "pitstop" || strings.HasPrefix(name, "pitstop-")) && strings.HasSuffix(domain, ".iam.gserviceaccount.com") {
		return ByPitstop
	}
	return ByOwner
}

// Loss is one slice that was lost, from the first entry that says so.
type Loss struct {
	At    time.Time    `json:"at,omitzero"`
	Cause events.Cause `json:"cause"`
	// Project and Zone; Slice is the node, or the common part of its workers' names where no entry names the node.
	Project string `json:"project"`
	Zone    string `json:"zone"`
	Slice   string `json:"slice"`
	// Generation, Accelerator and Chips are empty and 0 where no entry says them. ChipsAtLeast follows from the highest
	// worker that is named.
	Generation   string `json:"generation"`
	Accelerator  string `json:"accelerator"`
	Chips        int    `json:"chips"`
	ChipsAtLeast int    `json:"chips_at_least"`
	// Workers is how many of its workers spoke of it.
	Workers int `json:"workers"`
	// MatchedByTime says that the node and its workers were brought together because both were lost, or taken down, at
	// the same time in the same zone; no entry says that they belong together.
	MatchedByTime bool `json:"matched_by_time"`

	Outcome Outcome `json:"outcome"`
	// BackAt and Gap, in seconds, for a slice that is back; BackZone where that is another zone. For one that is given up
	// Gap ends with its deletion, for one that is not back with the record.
	BackAt   time.Time `json:"back_at,omitzero"`
	BackZone string    `json:"back_zone,omitzero"`
	Gap      float64   `json:"gap_seconds"`
	// Asked is when somebody first asked for it again. Unasked is how many seconds passed until then, or until its owner deleted it; 0 where
	// nobody asked. Workload is that of the slice.
	Asked    time.Time `json:"-"`
	Unasked  float64   `json:"unasked_seconds"`
	Workload string    `json:"-"`
	// RecreatedBy and Principal are who brought it back; the principal of Google's own recovery is empty.
	RecreatedBy By     `json:"recreated_by"`
	Principal   string `json:"principal"`
	// DeletedBy is the principal that deleted the lost TPU.
	DeletedBy string `json:"deleted_by"`
	// FailedCreates counts the creations that failed meanwhile, FailedBy the same by what their failure means; Again how
	// often it was lost again before it was back.
	FailedCreates int                         `json:"failed_creates"`
	FailedBy      map[reason.FailureClass]int `json:"failed_creates_by_class"`
	Again         int                         `json:"again"`
	// ChipHours are lost between loss and return. ChipHoursAtLeast is a lower bound where the size is not known.
	ChipHours        float64 `json:"chip_hours"`
	ChipHoursAtLeast float64 `json:"chip_hours_at_least"`

	// Announced says that a notice came before, Lead how many seconds before, InTime that this was time enough.
	Announced bool    `json:"announced"`
	Lead      float64 `json:"lead_seconds"`
	InTime    bool    `json:"in_time"`
}

// Sum adds up losses.
type Sum struct {
	Losses     int `json:"losses"`
	Back       int `json:"back"`
	BackUnseen int `json:"back_unseen"`
	GivenUp    int `json:"given_up"`
	NotBack    int `json:"not_back"`
	NotTold    int `json:"not_told"`
	// The gaps of those that are back, in seconds.
	GapSum  float64 `json:"gap_seconds"`
	GapP50  float64 `json:"gap_p50_seconds"`
	GapP95  float64 `json:"gap_p95_seconds"`
	GapMost float64 `json:"gap_most_seconds"`
	// Chip-hours lost by those that are back or given up, of known size, and at least of unknown size; SizeUnknown counts the latter.
	ChipHours        float64 `json:"chip_hours"`
	ChipHoursAtLeast float64 `json:"chip_hours_at_least"`
	SizeUnknown      int     `json:"size_unknown"`
	// NotBackChipHours are those of slices that were not back, up to the end of the record: nobody may have wanted them.
	NotBackChipHours float64 `json:"not_back_chip_hours"`
	Announced        int     `json:"announced"`
	InTime           int     `json:"in_time"`

	gaps []float64
}

// Class is what losses are grouped by; an empty generation is not known.
type Class struct {
	Cause      events.Cause `json:"cause"`
	Zone       string       `json:"zone"`
	Generation string       `json:"generation"`
}

// Group is the losses of one class.
type Group struct {
	Class
	Sum
}

// Agent is who brought something back.
type Agent struct {
	By        By     `json:"by"`
	Principal string `json:"principal"`
}

// Recreated is what one agent brought back.
type Recreated struct {
	Agent
	Sum
}

// Leak is a queued resource that is still there though its slice is lost: it holds quota.
type Leak struct {
	Project        string    `json:"project"`
	Zone           string    `json:"zone"`
	QueuedResource string    `json:"queued_resource"`
	Since          time.Time `json:"since,omitzero"`
	// Held is how many hours it held its quota up to the end of the record.
	Held  float64 `json:"held_hours"`
	Chips int     `json:"chips"`
}

// Leaks are the queued resources that outlived their slices.
type Leaks struct {
	// Left are there at the end of the record; Late were deleted more than an hour after their slice was lost, and held
	// LateHours in all.
	Left      []Leak  `json:"left"`
	Late      int     `json:"late"`
	LateHours float64 `json:"late_hours"`
}

// Notices counts the notices of maintenance, by slice.
type Notices struct {
	Announced int `json:"announced"`
	Withdrawn int `json:"withdrawn"`
	// Began counts those whose maintenance began, as far as an entry says so.
	Began int `json:"began"`
}

// Report is what a record says.
type Report struct {
	// Losses stand in the order in which their ends became known.
	Losses []Loss    `json:"losses"`
	From   time.Time `json:"from,omitzero"`
	To     time.Time `json:"to,omitzero"`
	// Entries is how many were read, and Used how many say something about a slice. Elsewhere counts the losses of machines that are
	// no workers of the Cloud TPU API and explain no Job.
	Entries   int `json:"entries"`
	Used      int `json:"used"`
	Elsewhere int `json:"elsewhere"`
	// Slices counts the nodes that are named, Unnamed the slices of which only workers are.
	Slices  int `json:"slices"`
	Unnamed int `json:"unnamed"`

	Total     Sum         `json:"total"`
	Groups    []Group     `json:"groups"`
	Recreated []Recreated `json:"recreated"`
	Leaks     Leaks       `json:"leaked_queued_resources"`
	Notices   Notices     `json:"notices"`
	// Released counts the deletions by an owner of a slice that nothing had happened to.
	Released int `json:"released"`
	// RunTimeLimits counts the slices that an instance schedule stopped; no TPU was lost by that.
	RunTimeLimits int `json:"run_time_limits"`
	// TrainingExits counts the crew's words that training ended by itself; no TPU was lost by that.
	TrainingExits int `json:"training_exits"`
	// Workloads are the accounts of the workloads whose name an entry says, by their names. Interruptions are theirs, the dearest first.
	Workloads     []Workload     `json:"-"`
	Interruptions []Interruption `json:"-"`
	// LeadNeeded is how many seconds a notice has to come before the loss to be in time.
	LeadNeeded float64 `json:"lead_needed_seconds"`
	// Unsure lists in plain words the facts that the logs do not hold.
	Unsure []string `json:"unsure"`
}
