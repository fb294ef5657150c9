package metadata

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
)

// Machine is what a machine knows of itself.
type Machine struct {
	Project, Zone string
	// Node is the TPU's name, Host the machine's own.
	Node, Host string
	// Worker is its index among the TPU's Workers, Unknown where nothing says it; Peers are their addresses, worker 0 first.
	Worker, Workers int
	Peers           []string
	// Accelerator is the TPU's type, such as v5litepod-16.
	Accelerator string
	// Slice and Slices are the place in a Multislice; 0 of 1 where there is none, and Unknown where nothing says which slice it is.
	Slice, Slices int
	// MachineID tells machines of one host name apart where there is no metadata server.
	MachineID string
	// InstanceID is the machine's number at Compute Engine.
	InstanceID string
	// Directory is the checkpoint directory as the node's metadata say it.
	Directory string
	// Data are the directories of the training's data as the node's metadata say them.
	Data []string
	// ServiceAccounts says that there is one whose tokens can be had.
	ServiceAccounts bool
	// Pod is the Pod in which the crew runs, if it runs in one and its manifest says so.
	Pod Pod
}

// Unknown is the index of a worker or a slice that nothing tells. To take it for the first would make several machines the first.
const Unknown = -1

// Unsure says what is not known of the place among the others; it is nil where everything is.
func (m Machine) Unsure() error {
	switch {
	case m.Worker == Unknown && m.Workers > 1:
		return fmt.Errorf("nothing says which of the %d workers this is", m.Workers)
	case m.Slice == Unknown && m.Slices > 1:
		return fmt.Errorf("nothing says which of the %d slices this is", m.Slices)
	}
	return nil
}

// SliceName is the name of this machine's slice, the same on all its workers: the TPU's name, else worker 0's address.
func (m Machine) SliceName() string {
	switch {
	case m.Node != "":
		return m.Node
	case len(m.Peers) < 2:
		return m.Host
	}
	if host, _, err := net.SplitHostPort(m.Peers[0]); err == nil {
		return host
	}
	return m.Peers[0]
}

// reply is the part of the recursive answer that is read.
type reply struct {
	Instance struct {
		ID              json.Number                `json:"id"`
		Zone            string                     `json:"zone"`
		Hostname        string                     `json:"hostname"`
		Name            string                     `json:"name"`
		Attributes      map[string]string          `json:"attributes"`
		ServiceAccounts map[string]json.RawMessage `json:"serviceAccounts"`
	} `json:"instance"`
	Project struct {
		ID string `json:"projectId"`
	} `json:"project"`
}

// Machine reads who this machine is. The environment of a container (GKE's TPU_* and MEGASCALE_* variables) fills what
// the metadata of the machine do not say.
func (c *Client) Machine(ctx context.Context) (Machine, error) {
	v, err := c.Get(ctx, "?recursive=true&alt=json")
	if p, _ := podIn(os.Getenv); err != nil && p.Known() { //nolint:errcheck // PodError says it
		return c.pod(ctx)
	}
	if err != nil {
		return Machine{}, err
	}
	var r reply
	if err := json.Unmarshal([]byte(v.Text), &r); err != nil {
		return Machine{}, fmt.Errorf("metadata server: the answer cannot be read: %w", err)
	}
	a := r.Instance.Attributes
	env := tpuEnv(a["tpu-env"])
	m := Machine{
		Project: r.Project.ID, Zone: path.Base(r.Instance.Zone), InstanceID: r.Instance.ID.String(),
		Node: first(a["instance-id"], env["NODE_ID"]), Host: first(strings.Split(r.Instance.Hostname, ".")[0], r.Instance.Name),
		Accelerator: first(a["accelerator-type"], env["ACCELERATOR_TYPE"]), Directory: a[events.MetadataCheckpointDir],
		Data:            events.DataDirs(a[events.MetadataDataDir]),
		ServiceAccounts: len(r.Instance.ServiceAccounts) > 0, Workers: 1, Slices: 1,
	}
	if m.Zone == "." {
		m.Zone = ""
	}
	m.Worker = number(first(a["agent-worker-number"], a["worker-id"], env["WORKER_ID"]), Unknown)
	for endpoint := range strings.SplitSeq(a["worker-network-endpoints"], ",") {
		if f := strings.Split(endpoint, ":"); len(f) >= 3 && f[2] != "" {
			m.Peers = append(m.Peers, f[2])
		}
	}
	m.Slices = max(1, number(env["MEGASCALE_NUM_SLICES"], 1))
	m.Slice = number(env["MEGASCALE_SLICE_ID"], Unknown)
	return m.inContainer(os.Getenv), nil
}

// inContainer takes what a container's environment says: on GKE the machine's metadata know nothing of the Pod.
func (m Machine) inContainer(env func(string) string) Machine {
	if names := env("TPU_WORKER_HOSTNAMES"); names != "" {
		m.Peers = strings.Split(names, ",")
	}
	m.Worker = number(env("TPU_WORKER_ID"), m.Worker)
	m.Accelerator = first(env("TPU_ACCELERATOR_TYPE"), m.Accelerator)
	m.Node = first(m.Node, env("TPU_NAME"))
	m.Slices = max(1, number(env("MEGASCALE_NUM_SLICES"), m.Slices))
	m.Slice = number(env("MEGASCALE_SLICE_ID"), m.Slice)
	m.Workers = max(1, len(m.Peers))
	p, _ := podIn(env) //nolint:errcheck // PodError says it
	return m.in(p, env)
}

// Local is a machine without a metadata server.
func Local() Machine {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	m := Machine{Host: strings.Split(host, ".")[0], Worker: Unknown, Slice: Unknown, Slices: 1}.inContainer(os.Getenv)
	return m
}

// MachineID names this installation of a system, "" where it has no name. It is for this program alone, as the system's own is
// not to be told to anybody, and stays the same from one start of the machine to the next.
// https://www.freedesktop.org/software/systemd/man/latest/machine-id.html
func MachineID() string { return machineIDIn(os.DirFS("/")) }

func machineIDIn(root fs.FS) string {
	raw, err := fs.ReadFile(root, "etc/machine-id")
	id := strings.TrimSpace(string(raw))
	if err != nil || id == "" || id == "uninitialized" {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte("pitcrew|"+id)))[:8]
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func number(s string, otherwise int) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 {
		return otherwise
	}
	return n
}

// tpuEnv reads the lines KEY: 'value' of the attribute tpu-env.
func tpuEnv(text string) map[string]string {
	env := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, ":"); ok {
			env[strings.TrimSpace(k)] = strings.Trim(strings.TrimSpace(v), `'"`)
		}
	}
	return env
}

// The values that announce something, and those of the node's metadata.
const (
	PathEvent      = "instance/maintenance-event"
	PathUpcoming   = "instance/upcoming-maintenance?alt=json"
	PathPreempted  = "instance/preempted"
	PathAttributes = "instance/attributes/?recursive=true&alt=json"
)

// The words that the server has for maintenance about to begin. https://cloud.google.com/compute/docs/metadata/getting-live-migration-notice
var maintenanceEvents = []string{"TERMINATE_ON_HOST_MAINTENANCE", "MIGRATE_ON_HOST_MAINTENANCE"}

// Event reads the maintenance event. A word that the server does not have is an error: it announces nothing, and takes nothing back.
func Event(text string) (maintenance bool, err error) {
	return word(PathEvent, text, "NONE", maintenanceEvents...)
}

// Preempted reads whether the machine is being preempted. A word that the server does not have is an error.
func Preempted(text string) (preempted bool, err error) {
	return word(PathPreempted, text, "FALSE", "TRUE")
}

// word reads a value that has one word for no, and some for yes. A value that is not there is no.
func word(path, text, no string, yes ...string) (bool, error) {
	text = strings.TrimSpace(text)
	is := func(w string) bool { return strings.EqualFold(w, text) }
	if text == "" || is(no) {
		return false, nil
	}
	if slices.ContainsFunc(yes, is) {
		return true, nil
	}
	return false, fmt.Errorf("%s: %.80q is no word that the metadata server has for it; it counts for nothing", path, text)
}

// Notice reads an announced maintenance; nil is none. The fields are those of Google's page, and a boolean or a number
// may come as a text.
// https://cloud.google.com/tpu/docs/view-maintenance-notifications
func Notice(text string) (*events.Notice, error) {
	if t := strings.TrimSpace(text); t == "" || t == "NONE" {
		return nil, nil //nolint:nilnil // nil says that there is none
	}
	var raw map[string]any
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, errors.New("the announced maintenance is no JSON object")
	}
	get := func(names ...string) string {
		for _, name := range names {
			switch v := raw[name].(type) {
			case string:
				return v
			case bool:
				return strconv.FormatBool(v)
			}
		}
		return ""
	}
	n := &events.Notice{
		Unscheduled:   strings.EqualFold(get("maintenanceType", "maintenance_type", "type"), "UNSCHEDULED"),
		CanReschedule: strings.EqualFold(get("canReschedule", "can_reschedule"), "true"),
	}
	switch strings.ToUpper(get("maintenanceStatus", "maintenance_status")) {
	case "PENDING":
		n.Status = events.NoticePending
	case "ONGOING":
		n.Status = events.NoticeOngoing
	default:
		return nil, nil //nolint:nilnil // an error message, or an empty object
	}
	for name, into := range map[string]*time.Time{
		"windowStartTime": &n.WindowStart, "windowEndTime": &n.WindowEnd, "latestWindowStartTime": &n.LatestWindowStart,
	} {
		if t, err := events.ParseTime(get(name, snake(name))); err == nil {
			*into = t
		}
	}
	return n, nil
}

func snake(name string) string {
	var b strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// Attributes reads the node's metadata.
func Attributes(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	var a map[string]string
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return nil, errors.New("the node's metadata are no JSON object of texts")
	}
	return a, nil
}
