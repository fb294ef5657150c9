package events_test

import (
	"fmt"
	"strings"
	"testing"

	"pitstop.internal/events"
)

const recreates = "pitstop-recreate@demo.iam.gserviceaccount.com"

// known are the accounts of a deployment.
var known = events.Accounts{
	Ours:        []string{"pitstop-patrol@demo.iam.gserviceaccount.com", recreates},
	Controllers: []string{"system:serviceaccount:ray-system:kuberay-operator", "queues@fleet.iam.gserviceaccount.com"},
}

// TestParties: only the system and Google's service agents are Google, whatever an account calls itself. In a cluster a service account is
// somebody's tool, and its owner's word counts, unless it is one of a controller.
func TestParties(t *testing.T) {
	for principal, want := range map[string]events.Party{
		"":                         events.PartyOwner,
		"ann@example.com":          events.PartyOwner,
		recreates:                  events.PartyOurs,
		strings.ToUpper(recreates): events.PartyOurs,
		"x-" + recreates:           events.PartyOwner,
		"pitstop-recreate@demo2.iam.gserviceaccount.com": events.PartyOwner,

		"system@google.com":                                            events.PartyGoogle,
		"service-123@cloud-tpu.iam.gserviceaccount.com":                events.PartyGoogle,
		"service-123@gcp-sa-tpu.iam.gserviceaccount.com":               events.PartyGoogle,
		"service-12345@compute-system.iam.gserviceaccount.com":         events.PartyGoogle,
		"service-12345@container-engine-robot.iam.gserviceaccount.com": events.PartyGoogle,
		"service-12345@cloud-ml.google.com.iam.gserviceaccount.com":    events.PartyGoogle,
		"123@cloudservices.gserviceaccount.com":                        events.PartyGoogle,
		"x@cloudservices.gserviceaccount.com":                          events.PartyOwner,
		"service-abc@demo.iam.gserviceaccount.com":                     events.PartyOwner,
		"service-1@example.com":                                        events.PartyOwner,
		"service-12345@my-project.iam.gserviceaccount.com":             events.PartyOwner,
		"service-12345@my-gcp-sa-tpu.iam.gserviceaccount.com":          events.PartyOwner,
		"service-12345@cloud-tpu.example.com":                          events.PartyOwner,
		"service-12345@gcp-sa-tpu.iam.gserviceaccount.com.example.com": events.PartyOwner,
		"bot@gcp-sa-tpu.iam.gserviceaccount.com":                       events.PartyOwner,

		"system:kube-controller-manager":                                                  events.PartyController,
		"system:node:gke-tpu-2f41c6aa-bq7x":                                               events.PartyController,
		"system:serviceaccount:kube-system:ttl-after-finished-controller":                 events.PartyController,
		"system:serviceaccount:jobset-system:jobset-controller-manager":                   events.PartyController,
		"system:serviceaccount:kueue-system:kueue-controller-manager":                     events.PartyController,
		"system:serviceaccount:gke-managed-jobset:jobset-controller-manager":              events.PartyController,
		"system:serviceaccount:ray-system:kuberay-operator":                               events.PartyController,
		"queues@fleet.iam.gserviceaccount.com":                                            events.PartyController,
		"system:serviceaccount:ray-system:another":                                        events.PartyOwner,
		"system:serviceaccount:argocd:argocd-application-controller":                      events.PartyOwner,
		"system:serviceaccount:flux-system:kustomize-controller":                          events.PartyOwner,
		"system:serviceaccount:kube-system-2:default":                                     events.PartyOwner,
		"system:serviceaccount:my-kube-system:default":                                    events.PartyOwner,
		"system:serviceaccount:train:default":                                             events.PartyOwner,
		"ci@demo.iam.gserviceaccount.com":                                                 events.PartyOwner,
		"principal://iam.googleapis.com/locations/global/workforcePools/corp/subject/ann": events.PartyOwner,
		"demo.svc.id.goog[argocd/argocd-application-controller]":                          events.PartyOwner,
	} {
		if got := known.Party(events.Call{Principal: principal}); got != want {
			t.Errorf("%q is %s, want %s", principal, got, want)
		}
	}
	if got := known.Party(events.Call{Last: true}); got != events.PartyNobody {
		t.Errorf("the end of an operation that names nobody is word of %s", got)
	}
	for name, c := range map[string]events.Call{"that begins": {First: true}, "that begins and ends": {First: true, Last: true}} {
		if got := known.Party(c); got != events.PartyOwner {
			t.Errorf("a call %s and names nobody is word of %s", name, got)
		}
	}
}

// TestCallers: an identity without an e-mail address is named by its subject, which loses its prefix, and a borrowed account by the person
// who borrowed it.
func TestCallers(t *testing.T) {
	federated := "principal://iam.googleapis.com/locations/global/workforcePools/corp/subject/ann"
	for says, want := range map[string]string{
		`{"principalEmail":"ann@example.com"}`:                                           "ann@example.com",
		`{"principalEmail":"ann@example.com","principalSubject":"user:ann@example.com"}`: "ann@example.com",
		`{"principalSubject":"` + federated + `"}`:                                       federated,
		`{"principalSubject":"user:ann@example.com"}`:                                    "ann@example.com",
		`{"principalSubject":"serviceAccount:` + recreates + `"}`:                        recreates,
		`{"principalSubject":"serviceAccount:demo.svc.id.goog[argocd/controller]"}`:      "demo.svc.id.goog[argocd/controller]",
		`{}`: "", `null`: "",
		`{"serviceAccountDelegationInfo":[{"firstPartyPrincipal":{"principalEmail":"ci@demo.iam.gserviceaccount.com"}}]}`:                                                                                                             "ci@demo.iam.gserviceaccount.com",
		`{"principalEmail":"` + recreates + `","serviceAccountDelegationInfo":[{"firstPartyPrincipal":{"principalEmail":"service-1@gcf-admin-robot.iam.gserviceaccount.com"}}]}`:                                                      recreates,
		`{"principalEmail":"` + recreates + `","serviceAccountDelegationInfo":[{"firstPartyPrincipal":{"principalEmail":"ann@example.com"}}]}`:                                                                                        "ann@example.com",
		`{"principalEmail":"` + recreates + `","serviceAccountDelegationInfo":[{"firstPartyPrincipal":{"principalEmail":"service-1@serverless-robot-prod.iam.gserviceaccount.com"}},{"principalSubject":"` + federated + `"}]}`:       federated,
		`{"principalEmail":"` + recreates + `","serviceAccountDelegationInfo":[{"principalSubject":"serviceAccount:demo.svc.id.goog[airflow/default]"}]}`:                                                                             recreates,
		`{"principalEmail":"` + recreates + `","serviceAccountDelegationInfo":[{}, {"firstPartyPrincipal":{"principalSubject":"principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/ci/subject/main"}}]}`: "principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/ci/subject/main",
		`{"principalEmail":"ann@example.com","serviceAccountDelegationInfo":"of another shape"}`:                                                                                                                                      "ann@example.com",
	} {
		e, err := events.Read([]byte(deletion("DeleteNode", says, "")))
		if err != nil || e.Kind != events.KindCall || e.Call.Principal != want {
			t.Errorf("%s is by %q, want %q: %v", says, e.Call.Principal, want, err)
		}
	}
}

// TestTheEndOfAnOperationIsItsCallers: by the entry that began it, and by nothing else.
func TestTheEndOfAnOperationIsItsCallers(t *testing.T) {
	begun := events.Callers{}
	for i, c := range []struct{ who, operation, want string }{
		{`{"principalEmail":"ann@example.com"}`, `"operation":{"id":"a","first":true},`, "ann@example.com"},
		{`{}`, `"operation":{"id":"b","last":true},`, ""},
		{`{}`, `"operation":{"id":"a","last":true},`, "ann@example.com"},
		{`{}`, `"operation":{"id":"a","last":true},`, ""},
		{`{"principalEmail":"bob@example.com"}`, `"operation":{"id":"c","last":true},`, "bob@example.com"},
		{`{}`, `"operation":{"id":"d","first":true},`, ""},
		{`{}`, `"operation":{"id":"d","last":true},`, ""},
		{`{}`, "", ""},
	} {
		e, err := events.Read([]byte(deletion("DeleteNode", c.who, c.operation)))
		must(t, err)
		if begun.Attribute(&e.Call); e.Call.Principal != c.want {
			t.Errorf("entry %d is by %q, want %q", i, e.Call.Principal, c.want)
		}
	}
}

// TestControllersAreNamedWhole: with their namespace, and no person among them.
func TestControllersAreNamedWhole(t *testing.T) {
	for name, fits := range map[string]bool{
		"system:serviceaccount:ray-system:kuberay-operator": true, "queues@fleet.iam.gserviceaccount.com": true, "1-compute@developer.gserviceaccount.com": true,
		"ray-system/kuberay-operator": false, "system:serviceaccount:ray-system": false, "system:serviceaccount:ray-system:": false, "ann@example.com": false,
		`x" OR "y`: false, "system:serviceaccount:*:*": false, "": false,
	} {
		if err := (events.Accounts{Controllers: []string{name}}).Validate(); (err == nil) != fits {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// deletion is an entry of a call that deletes a node.
func deletion(method, authentication, operation string) string {
	return fmt.Sprintf(`{"insertId":"i","timestamp":"2026-11-12T02:14:06Z","logName":"projects/demo/logs/cloudaudit.googleapis.com%%2Factivity",%s"resource":{"type":"audited_resource"},`+
		`"protoPayload":{"@type":"type.googleapis.com/google.cloud.audit.AuditLog","serviceName":"tpu.googleapis.com","methodName":"google.cloud.tpu.v2.Tpu.%s",`+
		`"resourceName":"projects/demo/locations/us-west4-a/nodes/llama-8b","authenticationInfo":%s}}`, operation, method, authentication)
}
