package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pitstop.internal/events"
	"pitstop.internal/shared/reason"
)

// permission is one permission that accounts of the deployment hold, with its purpose.
type permission struct {
	Name string
	// Accounts are functions. The name of any other account has a space in it.
	Accounts []string
	// On is the smallest thing that takes the grant. Object narrows it to the objects of one name, in any directory of a bucket.
	On, Object string
	// Role is the predefined role that carries it, or custom where each predefined role carries too much.
	Role string
	// Switches grant it: one of them has to be allowed. Without switches it is always granted.
	Switches []string
	// Calls are the calls that need it, as the simulated pipeline makes them: service and method. A permission without calls belongs to
	// another call, or Google needs it on the deployment's behalf.
	Calls []string
	// Why is its purpose, Source the page of Google that requires it.
	Why, Source string
}

// called are the calls of Calls, each with the name of the object that it may write.
func (p permission) called() []string {
	if p.Object == "" {
		return p.Calls
	}
	var calls []string
	for _, call := range p.Calls {
		calls = append(calls, call+" "+p.Object)
	}
	return calls
}

// The pages of Google that name the permission of a call.
const (
	sourceTPU        = "https://docs.cloud.google.com/iam/docs/roles-permissions/tpu"
	sourceActAs      = "https://docs.cloud.google.com/tpu/docs/configure-networking-access"
	sourceSharedVPC  = "https://docs.cloud.google.com/vpc/docs/provisioning-shared-vpc"
	sourceFirestore  = "https://docs.cloud.google.com/firestore/native/docs/security/iam"
	sourceStorage    = "https://docs.cloud.google.com/storage/docs/access-control/iam-json"
	sourcePubSub     = "https://docs.cloud.google.com/pubsub/docs/access-control"
	sourceDead       = "https://docs.cloud.google.com/pubsub/docs/handling-failures"
	sourcePush       = "https://docs.cloud.google.com/pubsub/docs/authenticate-push-subscriptions"
	sourceLogging    = "https://docs.cloud.google.com/logging/docs/access-control"
	sourceMonitoring = "https://docs.cloud.google.com/monitoring/access-control"
	sourceSink       = "https://docs.cloud.google.com/logging/docs/export/configure_export_v2"
	sourceRun        = "https://docs.cloud.google.com/run/docs/reference/iam/roles"
	sourceManager    = "https://docs.cloud.google.com/secret-manager/docs/access-control"
	sourceKMS        = "https://docs.cloud.google.com/kms/docs/reference/permissions-and-roles"
	sourceGKE        = "https://docs.cloud.google.com/iam/docs/roles-permissions/container"
	sourceIAP        = "https://docs.cloud.google.com/iap/docs/managing-access"
	sourceBuild      = "https://docs.cloud.google.com/functions/docs/securing/build-custom-sa"
)

var (
	// every are all functions of the pipeline, but for order: that is only there with a console.
	every = append(deciding[:len(deciding):len(deciding)], "notify")
	// deciding are those of them except notify.
	deciding  = []string{"maintenance", "logevent", "patrol", "checkpoint", "recovery", "recreate"}
	replacing = []string{"recreate", "recreate_non_spot"}
	// acting are the switches that lead to a look at checkpoints or to a lease. Only start_stopped leads to neither.
	acting = []string{"request_checkpoint", "early_maintenance", "restart", "recreate", "recreate_non_spot"}
)

const (
	onLedger   = "the ledger"
	onSecrets  = "the metadata values"
	onTold     = "what was told"
	onClusters = "clusters"
	custom     = "custom"
)

// permissions is the only list of grants. The README's table, the custom roles and the grants that depend on switches follow from it.
var permissions = []permission{
	{
		Name: "tpu.locations.list", Accounts: []string{"patrol"}, On: "watched projects", Role: "roles/tpu.viewer",
		Calls: []string{"tpu locations.list"}, Why: "to find every zone", Source: sourceTPU,
	},
	{
		Name: "tpu.nodes.list", Accounts: []string{"maintenance", "logevent", "patrol"}, On: "watched projects", Role: "roles/tpu.viewer",
		Calls: []string{"tpu nodes.list", "tpu queuedResources.list"}, Why: "to list the TPUs, and to find the one that an entry concerns", Source: sourceTPU,
	},
	{
		Name: "tpu.nodes.get", Accounts: deciding, On: "watched projects", Role: "roles/tpu.viewer",
		Calls: []string{"tpu nodes.get", "tpu nodes.getGuestAttributes", "tpu queuedResources.get", "tpu queuedResources.getMaintenanceInfo"},
		Why:   "to read a TPU before each decision; guest attributes hold the names of workers", Source: sourceTPU,
	},
	{
		Name: "tpu.operations.list", Accounts: []string{"patrol"}, On: "watched projects", Role: "roles/tpu.viewer",
		Calls: []string{"tpu operations.list"}, Why: "to follow operations to their end", Source: sourceTPU,
	},
	{
		Name: "tpu.nodes.update", Accounts: []string{"checkpoint"}, On: "watched projects", Role: "roles/tpu.admin",
		Switches: []string{"request_checkpoint"}, Calls: []string{"tpu nodes.patch"},
		Why: "to leave a request for a save in the metadata", Source: sourceTPU,
	},
	{
		Name: "tpu.nodes.performMaintenance", Accounts: []string{"checkpoint"}, On: "watched projects", Role: "roles/tpu.admin",
		Switches: []string{"early_maintenance"}, Calls: []string{"tpu nodes.performMaintenance", "tpu queuedResources.performMaintenanceQueuedResource"},
		Why: "to start announced maintenance at a good time", Source: sourceTPU,
	},
	{
		Name: "tpu.nodes.start", Accounts: []string{"recovery"}, On: "watched projects", Role: "roles/tpu.admin",
		Switches: []string{"start_stopped"}, Calls: []string{"tpu nodes.start"},
		Why: "to start a TPU that its owner did not stop", Source: sourceTPU,
	},
	{
		Name: "tpu.nodes.delete", Accounts: []string{"recreate"}, On: "watched projects", Role: "roles/tpu.admin",
		Switches: replacing, Calls: []string{"tpu nodes.delete", "tpu queuedResources.delete"},
		Why: "to make room for a new one", Source: sourceTPU,
	},
	{
		Name: "tpu.nodes.create", Accounts: []string{"recreate"}, On: "watched projects", Role: "roles/tpu.admin",
		Switches: replacing, Calls: []string{"tpu nodes.create", "tpu queuedResources.create"},
		Why: "to bring back a lost TPU", Source: sourceTPU,
	},
	{
		Name: "iam.serviceAccounts.actAs", Accounts: []string{"recreate"}, On: "tpu_service_accounts", Role: "roles/iam.serviceAccountUser",
		Switches: replacing, Why: "to create a TPU that runs as such an account", Source: sourceActAs,
	},
	{
		Name: "compute.subnetworks.use", Accounts: []string{"recreate"}, On: "shared_vpc_subnetworks", Role: "roles/compute.networkUser",
		Switches: replacing, Why: "to create a TPU in a host project's network", Source: sourceSharedVPC,
	},
	{
		Name: "storage.objects.get", Accounts: []string{"checkpoint", "recovery"}, On: "checkpoint_buckets", Role: "roles/storage.objectViewer",
		Switches: acting, Calls: []string{"storage objects.get"}, Why: "to read a checkpoint's own description, and the lease", Source: sourceStorage,
	},
	{
		Name: "storage.objects.list", Accounts: []string{"checkpoint", "recovery"}, On: "checkpoint_buckets", Role: "roles/storage.objectViewer",
		Switches: acting, Calls: []string{"storage objects.list"}, Why: "to find complete checkpoints, and the last attempt where no lease names it", Source: sourceStorage,
	},
	{
		Name: "storage.objects.create", Accounts: []string{"checkpoint"}, On: "checkpoint_buckets", Object: events.RequestObject, Role: "roles/storage.objectUser",
		Switches: []string{"request_checkpoint"}, Calls: []string{"storage objects.insert"}, Why: "to write the request for a save", Source: sourceStorage,
	},
	{
		Name: "storage.objects.delete", Accounts: []string{"checkpoint"}, On: "checkpoint_buckets", Object: events.RequestObject, Role: "roles/storage.objectUser",
		Switches: []string{"request_checkpoint"}, Calls: []string{"storage objects.insert"}, Why: "to replace a request: that counts as deleting", Source: sourceStorage,
	},
	{
		Name: "storage.objects.create", Accounts: []string{"recovery"}, On: "checkpoint_buckets", Object: events.LeaseObject, Role: "roles/storage.objectUser",
		Switches: acting, Calls: []string{"storage objects.insert"}, Why: "to write the lease, for a TPU that Google brought back too", Source: sourceStorage,
	},
	{
		Name: "storage.objects.delete", Accounts: []string{"recovery"}, On: "checkpoint_buckets", Object: events.LeaseObject, Role: "roles/storage.objectUser",
		Switches: acting, Calls: []string{"storage objects.insert"}, Why: "to replace the lease: that counts as deleting", Source: sourceStorage,
	},
	{
		Name: "storage.buckets.get", Accounts: []string{"recreate"}, On: "checkpoint_buckets", Role: "roles/storage.bucketViewer",
		Switches: replacing, Calls: []string{"storage buckets.get"},
		Why: "to learn where the checkpoints are, before a TPU is created in another region", Source: sourceStorage,
	},
	{
		Name: "storage.objects.get", Accounts: deciding, On: "the policy file", Role: "roles/storage.objectViewer",
		Why: "to read the owner's policies", Source: sourceStorage,
	},
	{
		Name: "datastore.entities.get", Accounts: every, On: onLedger, Role: custom,
		Calls: []string{"firestore ledger documents.batchGet"}, Why: "to read documents by key", Source: sourceFirestore,
	},
	{
		Name: "datastore.entities.list", Accounts: []string{"patrol"}, On: onLedger, Role: custom,
		Calls: []string{"firestore ledger documents.runQuery"}, Why: "to find workloads that are due", Source: sourceFirestore,
	},
	{
		Name: "datastore.entities.create", Accounts: deciding, On: onLedger, Role: custom,
		Calls: []string{"firestore ledger documents.commit create"}, Why: "to keep workloads and incidents; nobody may delete one", Source: sourceFirestore,
	},
	{
		Name: "datastore.entities.update", Accounts: deciding, On: onLedger, Role: custom,
		Calls: []string{"firestore ledger documents.commit update"}, Why: "the same", Source: sourceFirestore,
	},
	{
		Name: "datastore.entities.get", Accounts: []string{"order", "viewers", "operators"}, On: onLedger, Role: custom,
		Why: "to read the workload that an order is about, and what the console shows", Source: sourceFirestore,
	},
	{
		Name: "datastore.entities.list", Accounts: []string{"viewers", "operators"}, On: onLedger, Role: custom,
		Why: "to show all workloads and incidents; a console writes nothing", Source: sourceFirestore,
	},
	{
		Name: "datastore.entities.create", Accounts: []string{"order"}, On: onLedger, Role: custom,
		Why: "to keep an incident that an order ends", Source: sourceFirestore,
	},
	{
		Name: "datastore.entities.update", Accounts: []string{"order"}, On: onLedger, Role: custom,
		Why: "to keep an order with its workload", Source: sourceFirestore,
	},
	{
		Name: "storage.objects.get", Accounts: []string{"order", "viewers", "operators"}, On: "the policy file", Role: "roles/storage.objectViewer",
		Why: "to decide what follows from an order, and to show what would follow", Source: sourceStorage,
	},
	{
		Name: "pubsub.topics.publish", Accounts: []string{"order"}, On: "the topics in its environment", Role: "roles/pubsub.publisher",
		Why: "to send what follows from an order", Source: sourcePubSub,
	},
	{
		Name: "pubsub.topics.publish", Accounts: []string{"operators"}, On: "operator-orders", Role: "roles/pubsub.publisher",
		Why: "to send an order; nobody else may, since an order counts as the word of the person whom it names", Source: sourcePubSub,
	},
	{
		Name: "run.routes.invoke", Accounts: []string{"the sign-in's agent"}, On: "the consoles", Role: "roles/run.invoker",
		Why: "to bring requests of those who are signed in", Source: sourceRun,
	},
	{
		Name: "iap.webServiceVersions.accessViaIAP", Accounts: []string{"the members in `console`"}, On: "their console", Role: "roles/iap.httpsResourceAccessor",
		Why: "to sign in", Source: sourceIAP,
	},
	{
		Name: "datastore.entities.create", Accounts: []string{"patrol", "recreate"}, On: onSecrets, Role: custom,
		Calls: []string{"firestore secrets documents.commit create"}, Why: "to keep the values of metadata, which may be secret", Source: sourceFirestore,
	},
	{
		Name: "datastore.entities.update", Accounts: []string{"patrol", "recreate"}, On: onSecrets, Role: custom,
		Calls: []string{"firestore secrets documents.commit update"}, Why: "to postpone their expiry while a workload needs them", Source: sourceFirestore,
	},
	{
		Name: "datastore.entities.get", Accounts: []string{"recreate"}, On: onSecrets, Role: custom,
		Calls: []string{"firestore secrets documents.batchGet"}, Why: "to create a TPU with its metadata; no other account reads there", Source: sourceFirestore,
	},
	{
		Name: "datastore.entities.get", Accounts: []string{"notify"}, On: onTold, Role: custom,
		Calls: []string{"firestore told documents.batchGet"}, Why: "to read which news people have", Source: sourceFirestore,
	},
	{
		Name: "datastore.entities.create", Accounts: []string{"notify"}, On: onTold, Role: custom,
		Calls: []string{"firestore told documents.commit create"}, Why: "to remember them, so that each goes out once", Source: sourceFirestore,
	},
	{
		Name: "datastore.entities.update", Accounts: []string{"notify"}, On: onTold, Role: custom,
		Calls: []string{"firestore told documents.commit update"}, Why: "the same; notify writes nowhere else", Source: sourceFirestore,
	},
	{
		Name: "pubsub.topics.publish", Accounts: deciding, On: "the topics in its environment", Role: "roles/pubsub.publisher",
		Calls: []string{"pubsub topics.publish"}, Why: "to send requests to other functions, and updates to notify", Source: sourcePubSub,
	},
	{
		Name: "secretmanager.versions.access", Accounts: []string{"notify"}, On: "the secrets in `notify`", Role: "roles/secretmanager.secretAccessor",
		Why: "to read its tokens, and the secret addresses of webhooks", Source: sourceManager,
	},
	{
		Name: "logging.logEntries.create", Accounts: []string{"patrol"}, On: "watched projects", Role: "roles/logging.logWriter",
		Calls: []string{"logging entries.write"}, Why: "to write the canary", Source: sourceLogging,
	},
	{
		Name: "logging.logEntries.list", Accounts: []string{"patrol"}, On: "watched projects", Role: "roles/logging.viewer",
		Calls: []string{"logging entries.list"}, Why: "to look up in the audit log who ended or stopped a TPU", Source: sourceLogging,
	},
	{
		Name: "monitoring.timeSeries.list", Accounts: []string{"patrol"}, On: "the project", Role: custom,
		Calls: []string{"monitoring timeSeries.list"}, Why: "to see that a function leaves messages waiting, or gave them up", Source: sourceMonitoring,
	},
	{
		Name: "container.clusters.get", Accounts: []string{"patrol"}, On: onClusters, Role: custom,
		Why: "to find the endpoint of a cluster", Source: sourceGKE,
	},
	{
		Name: "container.clusters.connect", Accounts: []string{"patrol"}, On: onClusters, Role: custom,
		Why: "to reach that endpoint; the cluster's own roles say what may be read there", Source: sourceGKE,
	},
	{
		Name: "container.clusters.get", Accounts: []string{"recreate"}, On: onClusters, Role: custom,
		Switches: replacing, Why: "to find the endpoint of a cluster", Source: sourceGKE,
	},
	{
		Name: "container.clusters.connect", Accounts: []string{"recreate"}, On: onClusters, Role: custom,
		Switches: replacing, Why: "to reach that endpoint; the cluster's own roles say what may be changed there", Source: sourceGKE,
	},
	{
		Name: "container.clusters.get", Accounts: []string{"checkpoint"}, On: onClusters, Role: custom,
		Switches: []string{"early_maintenance"}, Why: "to find the endpoint of a cluster", Source: sourceGKE,
	},
	{
		Name: "container.clusters.connect", Accounts: []string{"checkpoint"}, On: onClusters, Role: custom,
		Switches: []string{"early_maintenance"}, Why: "to reach that endpoint; the cluster's own roles say which label of machines may be set there", Source: sourceGKE,
	},
	{
		Name: "run.routes.invoke", Accounts: []string{"each invoker"}, On: "its one function", Role: "roles/run.invoker",
		Why: "to bring messages", Source: sourceRun,
	},
	{
		Name: "iam.serviceAccounts.getOpenIdToken", Accounts: []string{"Pub/Sub's agent"}, On: "the invokers", Role: "roles/iam.serviceAccountOpenIdTokenCreator",
		Why: "to sign pushes", Source: sourcePush,
	},
	{
		Name: "pubsub.topics.publish", Accounts: []string{"Pub/Sub's agent"}, On: "the dead-letter topics", Role: "roles/pubsub.publisher",
		Why: "to store dead letters", Source: sourceDead,
	},
	{
		Name: "pubsub.subscriptions.consume", Accounts: []string{"Pub/Sub's agent"}, On: "the functions' subscriptions", Role: "roles/pubsub.subscriber",
		Why: "the same", Source: sourceDead,
	},
	{
		Name: "pubsub.topics.publish", Accounts: []string{"the sinks' writers"}, On: "log-events, maintenance-notices", Role: "roles/pubsub.publisher",
		Why: "to send log entries", Source: sourceSink,
	},
	{
		Name: "cloudkms.cryptoKeyVersions.useToEncrypt", Accounts: []string{"the agents of Firestore, Pub/Sub and Cloud Storage"}, On: "`kms_key`",
		Role: "roles/cloudkms.cryptoKeyEncrypterDecrypter", Why: "to encrypt with the customer's key", Source: sourceKMS,
	},
	{
		Name: "cloudkms.cryptoKeyVersions.useToDecrypt", Accounts: []string{"the agents of Firestore, Pub/Sub and Cloud Storage"}, On: "`kms_key`",
		Role: "roles/cloudkms.cryptoKeyEncrypterDecrypter", Why: "to decrypt with the customer's key", Source: sourceKMS,
	},
	{
		Name: "logging.logEntries.create", Accounts: []string{"the build account"}, On: "the project", Role: "roles/logging.logWriter",
		Why: "to log builds", Source: sourceBuild,
	},
	{
		Name: "artifactregistry.repositories.uploadArtifacts", Accounts: []string{"the build account"}, On: "the repository for images", Role: "roles/artifactregistry.writer",
		Why: "to store images", Source: sourceBuild,
	},
	{
		Name: "storage.objects.get", Accounts: []string{"the build account"}, On: "archives, and Cloud Functions' copy of them", Role: "roles/storage.objectViewer",
		Why: "to read the sources", Source: sourceBuild,
	},
}

// row is a permission of one account, as Terraform reads it.
type row struct {
	Account    string   `json:"account"`
	Permission string   `json:"permission"`
	On         string   `json:"on"`
	Object     string   `json:"object"`
	Role       string   `json:"role"`
	Switches   []string `json:"switches"`
}

// permissionRows makes permissions.json.
func permissionRows() ([]byte, error) {
	var rows []row
	for _, p := range permissions {
		for _, a := range p.Accounts {
			rows = append(rows, row{a, p.Name, p.On, p.Object, p.Role, append([]string{}, p.Switches...)})
		}
	}
	return indented(rows)
}

// rolesFile lists the permissions of each predefined role, from Google's reference of August 2026.
// https://docs.cloud.google.com/iam/docs/roles-permissions
//
//go:embed roles.json
var rolesFile []byte

func predefined() (map[string][]string, error) {
	roles := map[string][]string{}
	err := json.Unmarshal(rolesFile, &roles)
	return roles, err
}

// codeTable is the table of reason codes.
func codeTable() string {
	var b strings.Builder
	b.WriteString("| code | means |\n|---|---|\n")
	for _, m := range reason.Codes() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", m.Code, m.Text)
	}
	return b.String()
}

// permissionTable is the least-privilege table of the README. Below it stand the permissions that the roles carry beyond the table.
func permissionTable() (string, error) {
	roles, err := predefined()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("| account | permission | on | if allowed | why |\n|---|---|---|---|---|\n")
	holders := map[string][]string{}
	var order []string
	for _, p := range permissions {
		who := strings.Join(p.Accounts, ", ")
		switch {
		case slices.Equal(p.Accounts, every):
			who = "every function but order"
		case slices.Equal(p.Accounts, deciding):
			who = "every function but notify and order"
		}
		when := strings.Join(p.Switches, ", ")
		switch {
		case slices.Equal(p.Switches, acting):
			when = "any but `start_stopped`"
		case when != "":
			when = "`" + strings.ReplaceAll(when, ", ", "`, `") + "`"
		}
		on := p.On
		if p.Object != "" {
			on = "`" + p.Object + "` in " + on
		}
		fmt.Fprintf(&b, "| %s | [`%s`](%s) | %s | %s | %s |\n", who, p.Name, p.Source, on, when, p.Why)
		if p.Role == custom {
			continue // it carries nothing beyond
		}
		if holders[p.Role] == nil {
			order = append(order, p.Role)
		}
		holders[p.Role] = append(holders[p.Role], p.Accounts...)
	}
	b.WriteString("\n<details><summary>Permissions that the predefined roles carry beyond this table; no call of Pitstop uses them</summary>\n\n")
	for _, role := range order {
		if roles[role] == nil {
			return "", fmt.Errorf("roles.json has no permissions of %s", role)
		}
		// A permission with a row for any holder of the role is in the table.
		beyond := slices.DeleteFunc(slices.Clone(roles[role]), func(name string) bool {
			return slices.ContainsFunc(permissions, func(p permission) bool {
				return p.Name == name && slices.ContainsFunc(p.Accounts, func(a string) bool { return slices.Contains(holders[role], a) })
			})
		})
		fmt.Fprintf(&b, "- `%s`: %s\n", role, folded(beyond))
	}
	b.WriteString("\n</details>\n")
	return b.String(), nil
}

// folded shortens a list of permissions: one word for each thing, with its verbs. A very long list becomes its number.
func folded(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	verbs := map[string][]string{}
	var things []string
	for _, n := range names {
		i := strings.LastIndexByte(n, '.')
		if verbs[n[:i]] == nil {
			things = append(things, n[:i])
		}
		verbs[n[:i]] = append(verbs[n[:i]], n[i+1:])
	}
	const many = 30
	if len(names) > many {
		return fmt.Sprintf("%d permissions, listed in `scripts/dev/deployment/roles.json`", len(names))
	}
	for i, t := range things {
		if v := verbs[t]; len(v) > 1 {
			things[i] = "`" + t + ".{" + strings.Join(v, ",") + "}`"
		} else {
			things[i] = "`" + t + "." + v[0] + "`"
		}
	}
	return strings.Join(things, ", ")
}
