package flex

import (
	"fmt"
	"regexp"
	"strings"

	"pitstop.internal/shared/topology"
)

// Options say what to plan. The words in capital letters are for a person to replace.
type Options struct {
	Machine, Topology string
	// Location is that of the cluster: a region or a zone. Zones are where the machines may be, separated by commas.
	Cluster, Location, Zones string
	// Pool is the name of the node pool, and Name that of the Job or JobSet.
	Pool, Name, Namespace string
	// Slices is how many slices train together.
	Slices int
	// JobSet asks for a JobSet in the place of a Job. Several slices always make one.
	JobSet bool
	Image  string
	// ServiceAccount is that of the Pods: it reads and writes the checkpoints.
	ServiceAccount string
	// Directory is the checkpoint directory, and Command the training.
	Directory string
	Command   []string
	// Policy is the one by which Pitstop cares for the training.
	Policy string
	// ChipHourPrice is what an hour of one chip costs, in dollars; 0 is not known.
	ChipHourPrice float64
}

// Plan is everything that a person needs to run, in order.
type Plan struct {
	Slice Slice
	// Pools are the commands that make the node pools, and what has to be there before them.
	Pools []string
	// Manifest are the objects that train, as YAML.
	Manifest string
	options  Options
}

var (
	// nameForm is that of names at GKE; the words to replace have capital letters.
	nameForm = regexp.MustCompile(`^([a-z]([a-z0-9-]{0,61}[a-z0-9])?|[A-Z_]+)$`)
	// labelForm is that of names in Kubernetes by RFC 1123.
	labelForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	// valueForm is that of a label's value.
	valueForm = regexp.MustCompile(`^[a-zA-Z0-9]([-_.a-zA-Z0-9]{0,61}[a-zA-Z0-9])?$`)
	zonesForm = regexp.MustCompile(`^([a-z0-9-]+(,[a-z0-9-]+)*|[A-Z_]+)$`)
)

// Make makes a plan. Every error names the flag of pitstop flex plan that is wrong.
func Make(o Options) (Plan, error) {
	if o.Machine == "" {
		return Plan{}, fmt.Errorf("--machine is missing: the machine type, as in --machine ct6e-standard-4t")
	}
	s, err := SliceOf(o.Machine, o.Topology)
	if err != nil {
		return Plan{}, err
	}
	if err := o.checkNames(); err != nil {
		return Plan{}, err
	}
	if err := o.check(s); err != nil {
		return Plan{}, err
	}
	manifest, err := yamlOf(o.objects(s))
	if err != nil {
		return Plan{}, err
	}
	return Plan{Slice: s, Pools: o.pools(s), Manifest: manifest, options: o}, nil
}

// checkNames refuses what Kubernetes and GKE take for no name.
func (o Options) checkNames() error {
	for _, named := range [][2]string{{"--cluster", o.Cluster}, {"--location", o.Location}, {"--pool", o.Pool}} {
		if !nameForm.MatchString(named[1]) {
			return fmt.Errorf("%s %.80q is no name: one has up to 63 small letters, digits and hyphens, and begins with a letter", named[0], named[1])
		}
	}
	for _, named := range [][2]string{{"--name", o.Name}, {"--namespace", o.Namespace}} {
		if !labelForm.MatchString(named[1]) && (named[1] != "" || named[0] == "--name") {
			return fmt.Errorf("%s %.80q is no name: one has up to 63 small letters, digits and hyphens, and begins with a letter or a digit", named[0], named[1])
		}
	}
	return nil
}

// check refuses what no plan for a slice can have.
func (o Options) check(s Slice) error {
	const podName = len("-slice-00-0000-00000") // what Kubernetes adds to the name of a JobSet for a Pod
	switch {
	case !zonesForm.MatchString(o.Zones):
		return fmt.Errorf("--zones %.80q: it names zones, separated by commas, as in us-east5-a,us-east5-b", o.Zones)
	case len(o.Name) > 63-podName:
		return fmt.Errorf("--name %s has %d letters: it takes at most %d, because Kubernetes makes the Pods' names from it", o.Name, len(o.Name), 63-podName)
	case len(o.Pool) > 40-len("-99"):
		return fmt.Errorf("--pool %s has %d letters: GKE takes at most %d for a node pool, with its number", o.Pool, len(o.Pool), 40-len("-99"))
	case o.Name[0] <= '9' && (o.kind() == "jobset" || s.Several()):
		return fmt.Errorf("--name %s begins with a digit: JobSet, and the Service of several machines, take a name that begins with a letter", o.Name)
	case o.ServiceAccount != "" && !nameForm.MatchString(o.ServiceAccount):
		return fmt.Errorf("--service-account %.80q is no name of a service account in Kubernetes", o.ServiceAccount)
	case o.Slices < 1 || o.Slices > 99:
		return fmt.Errorf("--slices %d: it is 1 to 99", o.Slices)
	case o.Slices > 1 && !s.Several():
		return fmt.Errorf("--slices %d: GKE's Multislice takes slices of several machines, and %s with topology %s is one machine; name a larger --topology",
			o.Slices, s.Machine.Type, s.Topology)
	case o.Image == "" || strings.ContainsAny(o.Image, " \t\n"):
		return fmt.Errorf("--image %.80q is no image: name one with pitcrew and your training in it", o.Image)
	case !strings.HasPrefix(o.Directory, "gs://") || len(o.Directory) == len("gs://"):
		return fmt.Errorf("--checkpoint-dir %.80q: a Pod that comes again finds its checkpoints in a bucket only, as in gs://BUCKET/run", o.Directory)
	case !valueForm.MatchString(o.Policy):
		return fmt.Errorf("--policy %.80q is no value of a label: name a preset or a policy of your policy file", o.Policy)
	case !(o.ChipHourPrice >= 0): // not a number is neither
		return fmt.Errorf("--chip-hour-price %v: a price is no less than nothing", o.ChipHourPrice)
	case len(o.Command) == 0:
		return fmt.Errorf("the training's command is missing: name it after --, as in -- python3 train.py")
	}
	return nil
}

// poolNames are the node pools: a slice of several machines has one of its own.
func (o Options) poolNames() (names []string) {
	if o.Slices == 1 {
		return []string{o.Pool}
	}
	for i := range o.Slices {
		names = append(names, fmt.Sprintf("%s-%d", o.Pool, i))
	}
	return names
}

// policyName is the workload policy of TPU7x.
func (o Options) policyName(s Slice) string { return o.Pool + "-" + s.Topology }

// region is that of the cluster.
func (o Options) region() string {
	zone := regexp.MustCompile(`^[a-z]+-[a-z]+[0-9]+-.+$`)
	if zone.MatchString(o.Location) {
		return topology.Region(o.Location)
	}
	return o.Location
}

func command(words ...string) string { return strings.Join(words, " \\\n    ") }

// pools are the commands that make the node pools.
func (o Options) pools(s Slice) (commands []string) {
	policy := s.Several() && s.Machine.workloadPolicy
	if policy {
		commands = append(commands, command("gcloud compute resource-policies create workload-policy "+o.policyName(s),
			"--region="+o.region(), "--type=HIGH_THROUGHPUT", "--accelerator-topology="+s.Topology))
	}
	for _, pool := range o.poolNames() {
		words := []string{
			"gcloud container node-pools create " + pool, "--cluster=" + o.Cluster, "--location=" + o.Location,
			"--node-locations=" + o.Zones, "--machine-type=" + s.Machine.Type,
		}
		switch {
		case policy:
			words = append(words, "--placement-policy="+o.policyName(s))
		case s.Several():
			words = append(words, "--tpu-topology="+s.Topology)
		}
		words = append(words, "--flex-start", "--reservation-affinity=none", "--enable-autoscaling", "--num-nodes=0", "--min-nodes=0",
			fmt.Sprintf("--max-nodes=%d", s.Nodes))
		if strings.Contains(o.Zones, ",") {
			words = append(words, "--location-policy=ANY") // the zone that has machines, and not as many in each
		}
		if s.Several() {
			words = append(words, "--no-enable-autorepair")
		}
		commands = append(commands, command(words...))
	}
	return commands
}

// kind is what trains, as kubectl names it.
func (o Options) kind() string {
	if o.JobSet || o.Slices > 1 {
		return "jobset"
	}
	return "job"
}

// Text is the plan for a person, as a script with comments.
func (p Plan) Text(nodesOnly bool) string {
	o, s := p.options, p.Slice
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# %s (%s), topology %s: %d chips at %d a machine are %s.", s.Machine.Type, s.Machine.Generation, s.Topology, s.Chips, s.Machine.Chips, count(s.Nodes, "machine"))
	if o.Slices > 1 {
		say("# %d slices train together, each in a node pool of its own: %s in all.", o.Slices, count(o.Slices*s.Nodes, "machine"))
	}
	say("# This needs GKE %s or later. Google takes a flex-start machine away after %d days at most.", s.Machine.since, mostDays)
	say("# %s", p.cost())
	if !nodesOnly {
		say("# Autopilot makes the machines itself and refuses privileged containers: there leave out 1, 2, privileged: true, and the node pool in 5.")
	}
	say("\n# 1. The node pool. It costs nothing until a Pod asks for it.")
	say("%s", strings.Join(p.Pools, "\n"))
	say("\n# 2. Check it.")
	for _, pool := range o.poolNames() {
		say("gcloud container node-pools describe %s --cluster=%s --location=%s --format=json |\n    pitstop flex check --topology %s -", pool, o.Cluster, o.Location, s.Topology)
	}
	if nodesOnly {
		return b.String()
	}
	in := ""
	if o.Namespace != "" {
		in = " --namespace=" + o.Namespace
	}
	say("\n# 3. The training. %s", p.after())
	say("# Pitstop asks for a save before the %d days end, and brings the training back once it has failed for good. For that it needs", mostDays)
	say("#   in its policy file:   policies: {%s: {preset: spot, switches: {recreate_non_spot: yes}}}", o.Policy)
	say("#   in terraform.tfvars:  clusters = [\"%s/%s\"], allow = [\"request_checkpoint\", \"restart\", \"recreate_non_spot\"]", o.Location, o.Cluster)
	say("#   and in the cluster what pitstop gke rbac prints. terraform/README.md has each step, under Jobs of GKE.")
	say("kubectl apply -f - <<'EOF'\n%sEOF", p.Manifest)
	say("\n# 4. Watch it. Pods wait as Pending until Google has the machines.")
	say("kubectl get %s/%s%s", o.kind(), o.Name, in)
	say("kubectl get pods%s --selector=%s --output=wide", in, o.selector())
	say("kubectl get nodes --selector=%s=true --label-columns=%s", labelFlex, labelTopology)
	say("\n# 5. Clean up.")
	things := []string{o.kind() + "/" + o.Name}
	if o.kind() == "job" && s.Several() {
		things = append(things, "service/"+o.Name+"-workers")
	}
	say("kubectl delete %s%s", strings.Join(things, " "), in)
	for _, pool := range o.poolNames() {
		say("gcloud container node-pools delete %s --cluster=%s --location=%s", pool, o.Cluster, o.Location)
	}
	if s.Several() && s.Machine.workloadPolicy {
		say("gcloud compute resource-policies delete %s --region=%s", o.policyName(s), o.region())
	}
	say("# If the cluster was made for this training alone:\n# gcloud container clusters delete %s --location=%s", o.Cluster, o.Location)
	return b.String()
}

// mostDays is how long Google leaves a flex-start machine at most.
const mostDays = 7

// cost says what the chips cost while they are there.
func (p Plan) cost() string {
	price := p.options.ChipHourPrice
	if price == 0 {
		return "Name --chip-hour-price to see what it costs. Google's prices: https://cloud.google.com/products/dws/pricing"
	}
	chips := p.Slice.Chips * p.options.Slices
	hour := price * float64(chips)
	return fmt.Sprintf("At $%.2f a chip-hour, %s cost $%.2f an hour while the machines are there, and $%.2f in %d days.", price, count(chips, "chip"), hour, hour*24*mostDays, mostDays)
}

func (o Options) selector() string {
	if o.kind() == "jobset" {
		return "jobset.sigs.k8s.io/jobset-name=" + o.Name
	}
	return "batch.kubernetes.io/job-name=" + o.Name
}

// after says what follows when a machine is lost.
func (p Plan) after() string {
	switch {
	case p.options.kind() == "jobset":
		return "When a machine is lost, JobSet begins again, and pitcrew resumes from the last checkpoint.\n" +
			"# JobSet 0.10 or later has to be in the cluster: https://jobset.sigs.k8s.io/docs/installation/\n" +
			"# An older one does not know onJobFailureMessagePatterns, and the first lost machine would end the JobSet."
	case p.Slice.Several():
		return "When a machine is lost, this Job stays Failed until Pitstop or a person makes it again.\n# With --jobset, JobSet begins again by itself."
	}
	return "When the machine is lost, the Job makes a new Pod, and pitcrew resumes from the last checkpoint."
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
