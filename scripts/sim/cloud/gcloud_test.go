package cloud_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/cloud"
	"pitstop.internal/shared/cloudlog/cloudlogtest"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

const (
	// gcloudVariable turns TestGcloud on. Without it the test is skipped, so that the plain test command stays quick.
	gcloudVariable = "PITSTOP_GCLOUD"
	// gcloudVersion is the one whose output is compared. Another may print something else, and know other flags.
	gcloudVersion = "528.0.0"
	// gcloudWithin bounds each call on a busy machine.
	gcloudWithin = time.Minute
)

// gcloudUnfit says why the answer of gcloud version --format=json is not that of the gcloud that the test needs; "" when it is.
func gcloudUnfit(answer []byte) string {
	var parts map[string]string
	if err := json.Unmarshal(answer, &parts); err != nil {
		return fmt.Sprintf("gcloud does not say its version: %v", err)
	}
	if version := parts["Google Cloud SDK"]; version != gcloudVersion {
		return fmt.Sprintf("gcloud is of version %q, and its output is known of %s", version, gcloudVersion)
	}
	if parts["alpha"] == "" {
		return "gcloud has no component alpha"
	}
	return ""
}

func TestWhichGcloudIsFit(t *testing.T) {
	for answer, want := range map[string]string{
		`{"Google Cloud SDK":"528.0.0","alpha":"2025.06.20","bigtable":""}`: "",
		`{"Google Cloud SDK":"528.0.0","beta":"2025.06.20"}`:                "has no component alpha",
		`{"Google Cloud SDK":"529.0.0","alpha":"2025.06.27"}`:               `is of version "529.0.0"`,
		`{}`:   `is of version ""`,
		`oops`: "does not say its version",
	} {
		if got := gcloudUnfit([]byte(answer)); (got == "") != (want == "") || !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, want %q", answer, got, want)
		}
	}
}

// gcloudEnvironment is an environment without the settings of gcloud and the proxies of whoever runs the test.
func gcloudEnvironment(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "CLOUDSDK_") || strings.HasSuffix(strings.ToLower(name), "_proxy")
	})
}

func TestGcloudHasAnEnvironmentOfItsOwn(t *testing.T) {
	all := []string{"HOME=/root", "CLOUDSDK_CORE_PROJECT=mine", "https_proxy=http://p", "NO_PROXY=x", "PATH=/bin:/a_proxy", "CLOUDSDKS=1"}
	if d := cmp.Diff([]string{"HOME=/root", "PATH=/bin:/a_proxy", "CLOUDSDKS=1"}, gcloudEnvironment(all)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// callGcloud runs gcloud for no longer than gcloudWithin.
func callGcloud(t *testing.T, gcloud string, environment []string, args ...string) (out, said string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), gcloudWithin)
	defer cancel()
	var stdout, stderr bytes.Buffer
	call := exec.CommandContext(ctx, gcloud, args...) //nolint:gosec // the calls of this file
	call.Env, call.Stdout, call.Stderr = append(gcloudEnvironment(os.Environ()), environment...), &stdout, &stderr
	call.WaitDelay = time.Second // gcloud is a script, and its interpreter keeps the pipes open
	if err = call.Run(); ctx.Err() != nil {
		err = fmt.Errorf("it did not end: %w", ctx.Err())
	}
	return strings.TrimSpace(stdout.String()), stderr.String(), err
}

// gcloudStep is one call of gcloud, and what it prints. After ERROR it fails, and prints this among other things. Without a format
// and without an output nothing is compared. Before the call something may happen in the cloud.
type gcloudStep struct {
	command, want string
	before        func(*cloudtputest.API) error
	// passes is how much time passes in the cloud before the call.
	passes time.Duration
	// once leaves the call out of the alpha track, which shows nothing new by it.
	once bool
}

// shape and order are the flags of a node and of a queued resource that the guides use in every example.
const (
	shape = "--accelerator-type=v5litepod-8 --version=v2-alpha-tpuv5-lite"
	order = "--accelerator-type=v5litepod-16 --runtime-version=v2-alpha-tpuv5-lite"
	disk  = "projects/demo/zones/us-west4-a/disks/"
)

// vm are the calls about TPU VMs, and what differs between the two tracks.
func vm(track string) []gcloudStep {
	v := track + "compute tpus tpu-vm "
	steps := []gcloudStep{
		{command: v + "list", want: "", once: true},
		{command: v + "list --zone=us-wset4-a", want: "ERROR Permission denied on 'locations/us-wset4-a' (or it may not exist).", once: true},
		{command: v + "create n1 " + shape + " --spot --description=d --labels=a=b --metadata=k=v --tags=t1,t2 --network=nw --subnetwork=sn --internal-ips" +
			" --service-account=crew@demo.iam.gserviceaccount.com --scopes=https://www.googleapis.com/auth/cloud-platform --data-disk=source=" + disk + "d1,mode=read-only --shielded-secure-boot"},
		{command: v + "create n1 " + shape, want: "ERROR already exists", once: true},
		{command: v + "create n2 " + shape + " --metadata-from-file=startup-script=STARTUP --async"},
		{command: v + "list --format=csv[no-heading](name.basename(),acceleratorType,acceleratorConfig.topology,networkConfig.network,state)", want: "n1,v5litepod-8,2x4,nw,READY\nn2,v5litepod-8,2x4,default,READY"},
		{command: v + "describe n2 --format=value(metadata.startup-script)", want: "pitcrew run -- python3 train.py", once: true},
		{
			command: v + "describe n1 --format=csv[no-heading](description,labels.a,metadata.k,tags.list(separator=+),networkConfig.network,networkConfig.subnetwork,networkConfig.enableExternalIps,serviceAccount.email,dataDisks[0].sourceDisk,dataDisks[0].mode,shieldedInstanceConfig.enableSecureBoot,schedulingConfig.spot,runtimeVersion,health)",
			want:    "d,b,v,t1+t2,nw,sn,,crew@demo.iam.gserviceaccount.com," + disk + "d1,READ_ONLY,True,True,v2-alpha-tpuv5-lite,HEALTHY",
		},
		{command: v + "update n1 --description=e --update-labels=c=d --remove-labels=a --update-metadata=x=y --add-tags=t3"},
		{command: v + "describe n1 --format=csv[no-heading](description,labels.list(),metadata.list(),tags.list(separator=+))", want: "e,c=d,\"k=v,x=y\",t1+t2+t3"},
		{command: v + "update n1 --attach-disk=source=" + disk + "d2,mode=read-only"},
		{command: v + "describe n1 --format=value(dataDisks[].sourceDisk.list())", want: disk + "d1," + disk + "d2", once: true},
		{command: v + "update n1 --detach-disk=" + disk + "d1"},
		{command: v + "describe n1 --format=value(dataDisks[].sourceDisk.list())", want: disk + "d2"},
		{command: v + "stop n1"},
		{command: v + "describe n1 --format=value(state)", want: "STOPPED", once: true},
		{command: v + "start n1"},
		{command: v + "get-guest-attributes n1 --query-path=hostkeys/hostname --format=value(key,worker_id)", want: "hostname\t0"},
		{command: v + "accelerator-types list --filter=type:v5litepod --format=value(type)", want: "v5litepod-1\nv5litepod-8\nv5litepod-16\nv5litepod-256"},
		{command: v + "accelerator-types describe v4-8 --format=value(acceleratorConfigs[0].topology)", want: "2x2x1"},
		{command: v + "versions list --filter=version:lite --format=value(version)", want: "v2-alpha-tpuv5-lite"},
		{command: v + "versions describe tpu-ubuntu2204-base --format=value(version)", want: "tpu-ubuntu2204-base"},
		{command: v + "service-identity create --format=value(identity.email)", want: "service-100000000001@cloud-tpu.iam.gserviceaccount.com"},
		{command: v + "delete n2 --async"},
		{command: v + "delete n1"},
		{command: v + "describe n1", want: "ERROR was not found", once: true},
	}
	if track == "" {
		return append(steps, gcloudStep{command: v + "create n3 --type=v4 --topology=2x2x1 --version=tpu-ubuntu2204-base"},
			gcloudStep{command: v + "describe n3 --format=value(acceleratorType,apiVersion)", want: "v4-8\tV2"})
	}
	return append(steps,
		gcloudStep{command: v + "create n3 --type=v5litepod --topology=4x4 --version=v2-alpha-tpuv5-lite --autocheckpoint-enabled --provisioning-model=spot" +
			" --boot-disk=kms-key=projects/demo/locations/us-west4/keyRings/r/cryptoKeys/k,confidential-compute=true"},
		gcloudStep{
			command: v + "describe n3 --format=csv[no-heading](acceleratorType,apiVersion,autocheckpointEnabled,schedulingConfig.provisioningModel,bootDiskConfig.enableConfidentialCompute)",
			want:    "v5litepod-16,V2_ALPHA1,True,SPOT,True",
		},
		gcloudStep{command: v + "attach-disk n3 --disk=d3 --mode=read-only"},
		gcloudStep{command: v + "describe n3 --format=value(dataDisks[0].sourceDisk,dataDisks[0].mode)", want: disk + "d3\tREAD_ONLY"},
		gcloudStep{command: v + "detach-disk n3 --disk=d3"},
		gcloudStep{command: v + "describe n3 --format=value(dataDisks)", want: ""},
		gcloudStep{command: v + "perform-maintenance n3", want: "ERROR has no pending maintenance that can be rescheduled"},
		gcloudStep{command: v + "perform-maintenance n3 --async", before: func(a *cloudtputest.API) error {
			return a.Announce("us-west4-a", "n3", events.Notice{CanReschedule: true})
		}},
		gcloudStep{command: v + "simulate-maintenance-event n3 --workers=0,1"},
	)
}

// queued are the calls about queued resources.
func queued(track string) []gcloudStep {
	q := track + "compute tpus queued-resources "
	multi := "multisliceParams"
	if track != "" {
		multi = "multiNodeParams"
	}
	steps := []gcloudStep{
		{command: q + "create q1 --node-id=q1n " + order + " --spot --valid-until-duration=2h --metadata=a=b --labels=c=d --network=nw --subnetwork=sn --internal-ips --tags=t --description=d --data-disk=source=" + disk + "d1,mode=read-only"},
		{command: q + "create q2 --node-count=2 --node-prefix=m " + order + " --guaranteed --async"},
		{command: q + "list --format=csv[no-heading](name.basename(),state.state)", want: "q1,ACTIVE\nq2,ACTIVE"},
		{command: q + "describe q2 --format=value(tpu.nodeSpec[0]." + multi + ".nodeCount,tpu.nodeSpec[0]." + multi + ".nodeIdPrefix,state.stateInitiator)", want: "2\tm\tSERVICE"},
		{
			command: track + "compute tpus tpu-vm list --format=csv[no-heading](name.basename(),multisliceNode,queuedResource.basename(),labels.c,metadata.a,schedulingConfig.spot)",
			want:    "m-0,True,q2,,,\nm-1,True,q2,,,\nq1n,,q1,d,b,True",
		},
		{command: q + "delete q1", want: "ERROR DeleteQueuedResource is not supported when state is ACTIVE", once: true},
		{command: q + "delete q1 --force"},
		{command: q + "reset q2 --async"},
		{command: q + "describe q1", want: "ERROR was not found", once: true},
		{command: q + "create q3 --node-id=q3n " + order + " --reserved --async"},
	}
	if track != "" {
		steps = append(steps,
			gcloudStep{command: q + "create q4 --node-id=q4n " + order + " --best-effort --autocheckpoint-enabled --async"},
			gcloudStep{command: q + "create q5 --node-id=q5n " + order + " --provisioning-model=flex-start --max-run-duration=2h --async"},
			gcloudStep{command: q + "describe q5 --format=value(provisioningModel,runDuration.maxRunDuration)", want: "FLEX_START\t7200s"},
			gcloudStep{command: q + "perform-maintenance q2 --node-names=m-0", before: func(a *cloudtputest.API) error {
				return a.Announce("us-west4-a", "m-0", events.Notice{CanReschedule: true})
			}})
	}
	return append(steps, gcloudStep{command: q + "delete q2 --force --async"}, gcloudStep{command: q + "delete q3 --force --async"})
}

// formerly are the calls about legacy TPU Nodes, and those about no node.
func formerly(track string) []gcloudStep {
	l := track + "compute tpus "
	api := "V1"
	if track != "" {
		api = "V1_ALPHA1"
	}
	steps := []gcloudStep{
		{command: l + "locations list --format=value(locationId)", want: "us-west4-a\nus-west4-b"},
		{command: l + "locations describe us-west4-a --format=value(locationId)", want: "us-west4-a"},
		{command: l + "accelerator-types list --filter=type:v2 --format=value(type)", want: "v2-8\nv2-32"},
		{command: l + "accelerator-types describe v2-8 --format=value(type)", want: "v2-8"},
		{command: l + "versions list --filter=version:2.12 --format=value(version)", want: "2.12.0"},
		{command: l + "versions describe 2.12.0 --format=value(version)", want: "2.12.0"},
		{command: l + "topologies list --filter=v5litepod-16 --format=value(topology)", want: "4x4"},
		{command: l + "create l1 --accelerator-type=v2-8 --version=2.12.0 --network=default --range=10.240.0.0/29 --preemptible --description=d"},
		{command: l + "list --format=csv[no-heading](name.basename(),acceleratorType,network,cidrBlock,state)", want: "l1,v2-8,default,10.240.0.0/29,READY"},
		{command: l + "describe l1 --format=value(description,tensorflowVersion,schedulingConfig.preemptible,apiVersion)", want: "d\t2.12.0\tTrue\t" + api},
		{command: l + "stop l1"},
		{command: l + "describe l1 --format=value(state)", want: "STOPPED", once: true},
		{command: l + "start l1"},
		{command: l + "reimage l1 --version=2.11.0"},
		{command: l + "delete l1"},
		{command: l + "list --format=value(name)", want: "", once: true},
	}
	if track != "" {
		steps = append(steps, gcloudStep{command: l + "reservations list --format=value(name)", want: ""})
	}
	return steps
}

// logged are the calls about logs, after a preemption and before any entry of one's own.
func logged() []gcloudStep {
	return []gcloudStep{
		{command: "logging write mine hello", before: func(a *cloudtputest.API) error {
			if _, err := a.AddNode(cloudtputest.NodeConfig{Zone: "us-west4-a", Name: "n1", Accelerator: "v5litepod-16", Group: "t1v-n-9472280f"}); err != nil {
				return err
			}
			return a.Preempt("us-west4-a", "n1")
		}},
		{
			command: `logging read protoPayload.methodName="compute.instances.preempted" --order=asc --format=value(protoPayload.resourceName.basename())`,
			want:    "t1v-n-9472280f-w-0\nt1v-n-9472280f-w-1\nt1v-n-9472280f-w-2\nt1v-n-9472280f-w-3",
			passes:  cloudlogtest.Lag,
		},
		{command: `logging read logName="projects/demo/logs/mine" --format=value(textPayload)`, want: "hello"},
	}
}

// TestGcloud makes the calls of the guides with Google's own command, in its stable and its alpha track, and compares what it prints.
// Every answer is held against the discovery document of its version.
func TestGcloud(t *testing.T) {
	if os.Getenv(gcloudVariable) != "1" {
		t.Skipf("gcloud is not called: run the test with %s=1", gcloudVariable)
	}
	gcloud, err := exec.LookPath("gcloud")
	if err != nil {
		t.Skip("there is no gcloud")
	}
	answer, said, err := callGcloud(t, gcloud, []string{"CLOUDSDK_CONFIG=" + t.TempDir()}, "version", "--format=json")
	if err != nil {
		t.Fatalf("gcloud version: %v: %s", err, said)
	}
	if unfit := gcloudUnfit([]byte(answer)); unfit != "" {
		t.Skip(unfit)
	}
	for name, steps := range map[string][]gcloudStep{
		"VMs": vm(""), "alpha VMs": vm("alpha "), "queued resources": queued(""), "alpha queued resources": queued("alpha "),
		"legacy": formerly(""), "alpha legacy": formerly("alpha "), "logs": logged(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runGcloud(t, gcloud, steps)
		})
	}
}

func runGcloud(t *testing.T, gcloud string, steps []gcloudStep) {
	t.Helper()
	fleet := fleet(t)
	fleet.Fleet, fleet.Capacity["us-west4-a"] = nil, cloudtputest.Unlimited
	var passed atomic.Int64
	c := made(t, cloud.Config{Fleet: fleet, Speed: 1e6, Now: func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }})
	// gcloud reads a resource, changes a field, and sends the whole back, with what only the API may set.
	described, err := cloudtputest.Described(c, func(err error) {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if !strings.Contains(line, "only the API may say that") {
				t.Error(line)
			}
		}
	})
	must(t, err)
	server := httptest.NewServer(described)
	defer server.Close()
	dir := t.TempDir()
	startup := filepath.Join(dir, "startup.sh")
	must(t, os.WriteFile(startup, []byte("pitcrew run -- python3 train.py"), 0o600))
	environment := []string{
		"CLOUDSDK_CONFIG=" + dir, "CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU=" + server.URL + "/", "CLOUDSDK_API_ENDPOINT_OVERRIDES_LOGGING=" + server.URL + "/",
		"CLOUDSDK_AUTH_DISABLE_CREDENTIALS=true", "CLOUDSDK_CORE_PROJECT=demo", "CLOUDSDK_CORE_DISABLE_PROMPTS=1",
		"CLOUDSDK_CORE_DISABLE_FILE_LOGGING=1", "CLOUDSDK_CORE_CHECK_GCE_METADATA=false", "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING=true",
		"CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK=true", "CLOUDSDK_SURVEY_DISABLE_PROMPTS=true",
	}
	for _, s := range steps {
		if s.once && strings.HasPrefix(s.command, "alpha ") {
			continue
		}
		passed.Add(int64(s.passes))
		c.Catch()
		if s.before != nil {
			must(t, s.before(c.API))
		}
		args := strings.Fields(strings.ReplaceAll(s.command, "STARTUP", startup))
		if !strings.Contains(s.command, "--zone=") && !strings.Contains(s.command, " locations ") && !strings.HasPrefix(s.command, "logging ") {
			args = append(args, "--zone=us-west4-a")
		}
		out, said, err := callGcloud(t, gcloud, environment, args...)
		fails, wanted := strings.CutPrefix(s.want, "ERROR ")
		switch {
		case wanted && (err == nil || !strings.Contains(said, fails)):
			t.Errorf("gcloud %s: %v, %q; want an error with %q", s.command, err, said, fails)
		case !wanted && err != nil:
			t.Fatalf("gcloud %s: %v: %s", s.command, err, said)
		case !wanted && (s.want != "" || strings.Contains(s.command, "--format=")):
			if d := cmp.Diff(s.want, out); d != "" {
				t.Errorf("gcloud %s (-want +got):\n%s", s.command, d)
			}
		}
	}
}
