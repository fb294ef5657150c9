// Package entriestest has log entries for tests, and files of them.
package entriestest

import (
	"os"
	"path/filepath"
	"testing"
)

// Write writes a file of a test and returns its path.
func Write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Preempted is an entry about one worker of a slice.
func Preempted(worker string) string {
	return `{"protoPayload":{"serviceName":"compute.googleapis.com","methodName":"compute.instances.preempted",` +
		`"resourceName":"projects/mine/zones/us-west4-a/instances/t1v-n-3f2a9c01-w-` + worker + `"},"insertId":"i` + worker + `",` +
		`"resource":{"type":"gce_instance","labels":{"project_id":"mine","zone":"us-west4-a","instance_id":"7"}},` +
		`"logName":"projects/mine/logs/cloudaudit.googleapis.com%2Fsystem_event","timestamp":"` + At + `","receiveTimestamp":"` + At + `"}`
}

// At is the time of the entry of Preempted.
const At = "2026-11-12T02:14:06Z"
