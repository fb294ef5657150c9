// Package cluster runs a real Kubernetes control plane on this machine: etcd, kube-apiserver, kube-controller-manager, kube-scheduler,
// the JobSet controller, and kwok, whose machines and Pods are simulated. Its tests hold the promises of clustertest, the readings of the
// gke package, and what the functions do about failed Jobs, against it.
//
// The programs are built from the module in the folder programs. Only that module knows Kubernetes. etcd has to be installed.
package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"
)

// Plane is a control plane that runs.
type Plane struct {
	// URL is the address of the API server, and HTTP a client that trusts it.
	URL  string
	HTTP *http.Client
	// Token is that of the cluster's administrator. Tokens are those of the Users, who have no rights.
	Token  string
	Tokens map[string]string
	// Folder has the certificates, the data and the logs of the programs.
	Folder string

	programs []*program
	fell     chan error // the first program that ended by itself
}

// The names of users without rights. In a cluster of GKE they would be the e-mails of service accounts.
const (
	Reader       = "pitstop-patrol@example.iam.gserviceaccount.com"
	Recreator    = "pitstop-recreate@example.iam.gserviceaccount.com"
	Checkpointer = "pitstop-checkpoint@example.iam.gserviceaccount.com"
	// Watcher, Replacer and Maintainer are those of another deployment.
	Watcher    = "other-patrol@example.iam.gserviceaccount.com"
	Replacer   = "other-recreate@example.iam.gserviceaccount.com"
	Maintainer = "other-checkpoint@example.iam.gserviceaccount.com"
)

// Users are all of them.
func Users() []string {
	return []string{Reader, Recreator, Checkpointer, Watcher, Replacer, Maintainer}
}

// The annotations of a machine: kwok simulates it, and it is silent.
const (
	annotationSimulated = "kwok.x-k8s.io/node"
	annotationSilent    = "pitstop.example/silent"
)

//go:embed stages.yaml
var stages []byte

// startWithin bounds the start of the whole plane.
const startWithin = 2 * time.Minute

// Start starts a control plane of the programs in that folder. It runs until Stop is called or the context ends, and on Linux also ends
// with this process.
func Start(ctx context.Context, programs string) (p *Plane, err error) {
	p = &Plane{Token: rand.Text(), Tokens: map[string]string{}, fell: make(chan error, 1)}
	if p.Folder, err = os.MkdirTemp("", "pitstop-cluster-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.Stop()
			err = fmt.Errorf("%w\nthe logs are in %s", err, p.Folder)
		}
	}()
	limited, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	return p, p.start(limited, ctx, programs)
}

func (p *Plane) start(ctx, life context.Context, programs string) error {
	authorities, err := certify(p.Folder)
	if err != nil {
		return err
	}
	p.HTTP = &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 50,
	}}
	port, err := freePorts(5)
	if err != nil {
		return err
	}
	p.URL = "https://127.0.0.1:" + port[0]
	store, peer := "https://127.0.0.1:"+port[1], "https://127.0.0.1:"+port[2]
	file := func(name string) string { return filepath.Join(p.Folder, name) }
	tokens := p.Token + ",administrator,administrator,system:masters\n"
	for _, user := range Users() {
		p.Tokens[user] = rand.Text()
		tokens += p.Tokens[user] + "," + user + "," + user + "\n"
	}
	for name, text := range map[string]string{
		"tokens.csv": tokens,
		"kubeconfig": fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: plane\nclusters: [{name: plane, cluster: {server: %q, certificate-authority: %q}}]\n"+
			"users: [{name: plane, user: {token: %q}}]\ncontexts: [{name: plane, context: {cluster: plane, user: plane}}]\n", p.URL, file(fileAuthority), p.Token),
		"stages.yaml": string(stages),
		"jobset.yaml": fmt.Sprintf("apiVersion: config.jobset.x-k8s.io/v1alpha1\nkind: Configuration\nleaderElection: {leaderElect: false}\n"+
			"internalCertManagement: {enable: false}\nmetrics: {bindAddress: \"0\"}\nhealth: {healthProbeBindAddress: \"127.0.0.1:%s\"}\n"+
			"webhook: {host: 127.0.0.1, port: %s, certDir: %q}\n", port[3], port[4], p.Folder),
	} {
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			return err
		}
	}

	trusts := []string{"--cert-file=" + file(fileCertificate), "--key-file=" + file(fileKey), "--trusted-ca-file=" + file(fileAuthority), "--client-cert-auth"}
	for _, t := range trusts {
		trusts = append(trusts, "--peer-"+strings.TrimPrefix(t, "--"))
	}
	if err := p.run(life, "etcd", "etcd", append(trusts, "--name=plane", "--data-dir="+file("data"), "--listen-client-urls="+store, "--advertise-client-urls="+store,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=plane="+peer)...); err != nil {
		return err
	}
	if err := p.run(life, "kube-apiserver", filepath.Join(programs, "kube-apiserver"),
		"--etcd-servers="+store, "--etcd-cafile="+file(fileAuthority), "--etcd-certfile="+file(fileCertificate), "--etcd-keyfile="+file(fileKey),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port="+port[0], "--endpoint-reconciler-type=none",
		"--tls-cert-file="+file(fileCertificate), "--tls-private-key-file="+file(fileKey), "--cert-dir="+p.Folder,
		"--service-account-issuer=https://plane.invalid", "--service-account-key-file="+file(fileCertificate), "--service-account-signing-key-file="+file(fileKey),
		"--service-cluster-ip-range=10.0.0.0/24", "--token-auth-file="+file("tokens.csv"), "--authorization-mode=RBAC", "--allow-privileged",
		// No controller makes service accounts. The node selector of a namespace keeps the Pods of each case on the machines of that case.
		// Pods that ask for TPUs tolerate the taint of machines with TPUs, as in a cluster of GKE.
		"--disable-admission-plugins=ServiceAccount", "--enable-admission-plugins=PodNodeSelector,ExtendedResourceToleration",
		// An etcd before 3.4.25 cannot begin a watch with a list. The server would refuse kwok's watches, and kwok would see every change late.
		"--feature-gates=WatchList=false",
		// A GKE cluster waits five minutes until it evicts the Pods of a silent machine.
		"--default-unreachable-toleration-seconds=5", "--default-not-ready-toleration-seconds=5"); err != nil {
		return err
	}
	if err := p.wait(ctx, "kube-apiserver", p.URL+"/readyz"); err != nil {
		return err
	}
	if err := p.install(ctx, programs, port[4]); err != nil {
		return err
	}
	kubeconfig := "--kubeconfig=" + file("kubeconfig")
	for _, c := range [][]string{
		{
			"kube-controller-manager", kubeconfig, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=200", "--kube-api-burst=400",
			"--controllers=job-controller,garbage-collector-controller,node-lifecycle-controller,taint-eviction-controller,pod-garbage-collector-controller," +
				"namespace-controller,disruption-controller,ttl-after-finished-controller",
			"--node-monitor-period=2s", "--node-monitor-grace-period=20s", "--node-startup-grace-period=20s",
		},
		{"kube-scheduler", kubeconfig, "--leader-elect=false", "--secure-port=0"},
		{"jobset", kubeconfig, "--config=" + file("jobset.yaml")},
		{"kwok", kubeconfig, "--config=" + file("stages.yaml"), "--manage-all-nodes", "--node-lease-duration-seconds=0"},
	} {
		if err := p.run(life, c[0], filepath.Join(programs, c[0]), c[1:]...); err != nil {
			return err
		}
	}
	if err := p.wait(ctx, "jobset", "http://127.0.0.1:"+port[3]+"/readyz"); err != nil {
		return err
	}
	// It is ready a moment before its webhooks are.
	return p.until(ctx, "the webhooks of JobSet", func() (int, []byte, error) {
		return p.call(ctx, http.MethodPost, p.URL+Path("JobSet", "default")+"?dryRun=All", map[string]any{
			"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": map[string]any{"name": "none"}, "spec": map[string]any{},
		})
	})
}

// Stop stops the programs.
func (p *Plane) Stop() {
	for i := len(p.programs) - 1; i >= 0; i-- {
		p.programs[i].stop()
	}
}

// Fell tells of a program that ended by itself: with it, nothing that a test sees means anything.
func (p *Plane) Fell() <-chan error { return p.fell }

// program is one that runs.
type program struct {
	cmd  *exec.Cmd
	mu   sync.Mutex
	over bool // it was asked to end
	done chan struct{}
}

func (p *Plane) run(ctx context.Context, name, path string, args ...string) error {
	log := filepath.Join(p.Folder, name+".log")
	out, err := os.Create(log)
	if err != nil {
		return err
	}
	defer out.Close()                                                                        //nolint:errcheck // the program has its own
	one := &program{cmd: exec.CommandContext(ctx, path, args...), done: make(chan struct{})} //nolint:gosec // the callers are in this file
	one.cmd.Dir, one.cmd.Stdout, one.cmd.Stderr = p.Folder, out, out
	one.cmd.Env = append(os.Environ(), "HOME="+p.Folder) // whatever a person has set for kubectl or kwok is not for these
	dieWithParent(one.cmd)
	if err := one.cmd.Start(); err != nil {
		return fmt.Errorf("%s does not start: %w", name, err)
	}
	p.programs = append(p.programs, one)
	go func() {
		_ = one.cmd.Wait() //nolint:errcheck // its state says how it ended
		one.mu.Lock()
		asked := one.over || ctx.Err() != nil
		one.mu.Unlock()
		if !asked {
			raw, _ := os.ReadFile(log) //nolint:errcheck // without a log, the error has to do
			select {
			case p.fell <- fmt.Errorf("%s has ended by itself: %s\n%s", name, one.cmd.ProcessState, tail(raw)):
			default:
			}
		}
		close(one.done)
	}()
	return nil
}

func (o *program) stop() {
	o.mu.Lock()
	o.over = true
	o.mu.Unlock()
	_ = o.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	select {
	case <-o.done:
	case <-time.After(5 * time.Second):
		_ = o.cmd.Process.Kill() //nolint:errcheck // likewise
		<-o.done
	}
}

// wait waits until a program says that it is ready.
func (p *Plane) wait(ctx context.Context, name, url string) error {
	return p.until(ctx, name, func() (int, []byte, error) { return p.call(ctx, http.MethodGet, url, nil) })
}

// until makes a call until it succeeds.
func (p *Plane) until(ctx context.Context, name string, call func() (code int, body []byte, err error)) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last := errors.New("it was not asked")
	for {
		code, body, err := call()
		if code == http.StatusOK || code == http.StatusCreated {
			return nil
		}
		if ctx.Err() == nil {
			last = fmt.Errorf("answer %d %.300s, %w", code, body, err)
		}
		select {
		case err := <-p.fell:
			return err
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w: %w", name, ctx.Err(), last)
		case <-tick.C:
		}
	}
}

// install gives the cluster the resource and the webhooks of JobSet, and the resources in which Jobs wait. Its controller listens on that port.
func (p *Plane) install(ctx context.Context, programs, port string) error {
	authority, err := os.ReadFile(filepath.Join(p.Folder, fileAuthority))
	if err != nil {
		return err
	}
	for _, name := range []string{fileCRD, fileWebhooks} {
		raw, err := os.ReadFile(filepath.Join(programs, name))
		if err != nil {
			return err
		}
		objects, err := Objects(raw)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, o := range objects {
			hooks, _ := o["webhooks"].([]any)
			for _, h := range hooks {
				h, ok := h.(map[string]any)
				if !ok {
					return fmt.Errorf("%s has a webhook that is no object", name)
				}
				client, _ := h["clientConfig"].(map[string]any)
				service, _ := client["service"].(map[string]any)
				path, _ := service["path"].(string)
				h["clientConfig"] = map[string]any{"url": "https://127.0.0.1:" + port + path, "caBundle": authority}
			}
			if err := p.Create(ctx, "", o); err != nil {
				return err
			}
		}
	}
	queue, err := Objects(queueCRDs)
	if err != nil {
		return fmt.Errorf("queue-crds.yaml: %w", err)
	}
	for _, o := range queue {
		if err := p.Create(ctx, "", o); err != nil {
			return err
		}
	}
	for what, path := range map[string]string{
		"JobSet": "jobset.x-k8s.io/v1alpha2/jobsets", "ProvisioningRequest": "autoscaling.x-k8s.io/v1/provisioningrequests", "Workload": "kueue.x-k8s.io/v1beta2/workloads",
	} {
		if err := p.wait(ctx, "the API of "+what, p.URL+"/apis/"+path); err != nil {
			return err
		}
	}
	return nil
}

// queueCRDs define in what Jobs wait.
//
//go:embed queue-crds.yaml
var queueCRDs []byte

// paths are those under which objects of a kind are made.
var paths = map[string]string{
	"CustomResourceDefinition":         "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
	"MutatingWebhookConfiguration":     "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
	"ValidatingWebhookConfiguration":   "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
	"Namespace":                        "/api/v1/namespaces",
	"Node":                             "/api/v1/nodes",
	"ValidatingAdmissionPolicy":        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
	"ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
	"ConfigMap":                        "/api/v1/namespaces/%s/configmaps",
	"Service":                          "/api/v1/namespaces/%s/services",
	"Pod":                              "/api/v1/namespaces/%s/pods",
	"Job":                              "/apis/batch/v1/namespaces/%s/jobs",
	"JobSet":                           "/apis/jobset.x-k8s.io/v1alpha2/namespaces/%s/jobsets",
	"Role":                             "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/roles",
	"RoleBinding":                      "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/rolebindings",
	"ClusterRole":                      "/apis/rbac.authorization.k8s.io/v1/clusterroles",
	"ClusterRoleBinding":               "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}

// Path is where the objects of a kind are made. Namespace is that of kinds that have one.
func Path(kind, namespace string) string {
	if strings.Contains(paths[kind], "%s") {
		return fmt.Sprintf(paths[kind], namespace)
	}
	return paths[kind]
}

// Objects reads the objects of a manifest in YAML.
func Objects(manifest []byte) (all []map[string]any, err error) {
	d := yaml.NewDecoder(bytes.NewReader(manifest))
	for {
		var o map[string]any
		switch err := d.Decode(&o); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case len(o) > 0:
			all = append(all, o)
		}
	}
}

// Create makes an object as the administrator.
func (p *Plane) Create(ctx context.Context, namespace string, o map[string]any) error {
	kind, _ := o["kind"].(string)
	return p.Do(ctx, http.MethodPost, Path(kind, namespace), o, nil)
}

// Do makes a call as the administrator. A body that is an object is sent as JSON; a patch is a merge patch. Into gets the answer; nil
// drops it.
func (p *Plane) Do(ctx context.Context, method, path string, body, into any) error {
	code, raw, err := p.call(ctx, method, p.URL+path, body)
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: %w", method, path, err)
	case code >= 300:
		var status struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(raw, &status) //nolint:errcheck // then the code has to do
		return fmt.Errorf("%s %s: answer %d: %s", method, path, code, status.Message)
	case into == nil:
		return nil
	}
	return json.Unmarshal(raw, into)
}

func (p *Plane) call(ctx context.Context, method, url string, body any) (code int, answer []byte, err error) {
	var raw []byte
	if body != nil {
		if raw, err = json.Marshal(body); err != nil {
			return 0, nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(raw))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	if strings.HasPrefix(url, p.URL) {
		req.Header.Set("Authorization", "Bearer "+p.Token)
	}
	res, err := p.HTTP.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// Silence stops the heartbeat of a machine. Its Pods do nothing any more that the API could tell of.
func (p *Plane) Silence(ctx context.Context, node string) error {
	silent := map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotationSilent: "true"}}}
	if err := p.Do(ctx, http.MethodPatch, "/api/v1/nodes/"+node, silent, nil); err != nil {
		return err
	}
	var pods struct {
		Items []struct {
			Meta struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
			} `json:"metadata"`
		} `json:"items"`
	}
	if err := p.Do(ctx, http.MethodGet, "/api/v1/pods?fieldSelector=spec.nodeName="+node, nil, &pods); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if err := p.Do(ctx, http.MethodPatch, "/api/v1/namespaces/"+pod.Meta.Namespace+"/pods/"+pod.Meta.Name, silent, nil); err != nil {
			return err
		}
	}
	return nil
}

// freePorts finds ports of this machine that nobody listens on.
func freePorts(n int) (ports []string, err error) {
	for range n {
		var c net.ListenConfig
		l, err := c.Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() //nolint:errcheck // the port is known
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
