package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries/entriestest"
)

// wide is a text in UTF-16, as PowerShell writes it: with a mark of the order of its bytes, or without.
func wide(text string, order binary.AppendByteOrder, mark bool) string {
	var b []byte
	if mark {
		text = "\uFEFF" + text
	}
	for _, u := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestOtherFormsOfAFileAreRead: every verb that reads entries says the same of a file in another encoding.
func TestOtherFormsOfAFileAreRead(t *testing.T) {
	text := "[\r\n" + entriestest.Preempted("2") + ",\r\n" + entriestest.Preempted("1") + "\r\n]\r\n"
	event := func(entry string) string {
		return `{"specversion":"1.0","id":"7","source":"//cloudaudit.googleapis.com/projects/mine/logs/system_event","type":"google.cloud.audit.log.v1.written",` +
			`"time":"` + entriestest.At + `","methodName":"compute.instances.preempted","datacontenttype":"application/json; charset=utf-8","data":` + entry + "}\n"
	}
	for _, verb := range []string{"explain", "report", "replay"} {
		want, _, code := call(t, text, verb, "--json", "-")
		if code != cli.ExitDone || !strings.Contains(want, "preempt") {
			t.Fatalf("%s: exit code %d\n%s", verb, code, want)
		}
		for name, other := range map[string]string{
			"UTF-16":                          wide(text, binary.LittleEndian, true),
			"UTF-16, the other way round":     wide(text, binary.BigEndian, true),
			"UTF-16 without a mark":           wide(text, binary.LittleEndian, false),
			"UTF-16, the other way, unmarked": wide(text, binary.BigEndian, false),
			"gzip":                            zipped(t, text),
			"gzip of UTF-16":                  zipped(t, wide(text, binary.LittleEndian, true)),
			"two of gzip, one after another":  zipped(t, text[:300]) + zipped(t, text[300:]),
			"events of Eventarc":              event(entriestest.Preempted("2")) + event(entriestest.Preempted("1")),
		} {
			got, errOut, code := call(t, other, verb, "--json", "-")
			if code != cli.ExitDone || errOut != "" || got != want {
				t.Errorf("%s of %s: exit code %d, %q, and says\n%.500s\nin the place of\n%.500s", verb, name, code, errOut, got, want)
			}
		}
	}
	out, errOut, code := call(t, wide(strings.ReplaceAll(aDescription(), "\n", "\r\n"), binary.LittleEndian, true), "explain")
	if code != cli.ExitDone || errOut != "" || !strings.Contains(out, "node llama-8b, v5litepod-16 spot: READY") {
		t.Errorf("a description in UTF-16: exit code %d, %q\n%s", code, errOut, out)
	}
}

// TestOtherFormsOfAnEntryAreRefusedByName, with the way to the form that is read. None of them is a quiet record.
func TestOtherFormsOfAnEntryAreRefusedByName(t *testing.T) {
	t.Setenv("COLUMNS", "1000")
	const (
		logName = "projects/mine/logs/cloudaudit.googleapis.com%2Fsystem_event"
		audit   = `{"serviceName":"compute.googleapis.com","methodName":"compute.instances.preempted","resourceName":"projects/mine/zones/us-west4-a/instances/t1v-n-3f2a9c01-w-2"}`
		again   = "; read the log itself with gcloud logging read --format=json"
	)
	for name, c := range map[string]struct {
		text, says string
		code       int
	}{
		"rows of BigQuery": {
			`[{"logName":"` + logName + `","protopayload_auditlog":` + audit + `,"timestamp":"2026-11-12 02:14:06.000000 UTC","receiveTimestamp":"2026-11-12 02:14:07 UTC"}]`,
			":1: log entry: it is a row of a BigQuery export" + again, cli.ExitFailed,
		},
		"whose columns fit an entry": {
			`{"logName":"` + logName + `","protopayload_auditlog":` + audit + `,"timestamp":"` + entriestest.At + `"}`, "it is a row of a BigQuery export" + again, cli.ExitFailed,
		},
		"with words in the place of booleans": {
			`{"logName":"` + logName + `","protopayload_auditlog":` + audit + `,"operation":{"id":"o","first":"true","last":"true"},"timestamp":"` + entriestest.At + `"}`,
			"it is a row of a BigQuery export" + again, cli.ExitFailed,
		},
		"without the log": {`{"protopayload_auditlog":` + audit + `,"timestamp":"` + entriestest.At + `"}`, "it is a row of a BigQuery export" + again, cli.ExitFailed},
		"of another log": {
			`{"logName":"projects/mine/logs/pitstop-crew","protopayload_auditlog":null,"jsonPayload":{"attempt":"1"},"timestamp":"2026-11-12 02:14:06 UTC"}`,
			"it is a row of a BigQuery export" + again, cli.ExitFailed,
		},
		"rows of Log Analytics": {
			`[{"log_name":"` + logName + `","log_id":"cloudaudit.googleapis.com/system_event","proto_payload":{"audit_log":{"method_name":"compute.instances.preempted"}},"timestamp":"` + entriestest.At + `"}]`,
			"it is a row of Log Analytics" + again, cli.ExitFailed,
		},
		"of its text columns":         {`{"log_name":"` + logName + `","text_payload":"x","timestamp":"` + entriestest.At + `"}`, "it is a row of Log Analytics" + again, cli.ExitFailed},
		"an audit log without a call": {`{"logName":"` + logName + `","timestamp":"` + entriestest.At + `"}`, "it is of an audit log, and its protoPayload names neither a service nor a method", cli.ExitFailed},
		"CSV":                         {"insertId,logName,timestamp\nx,y,z\n", `:1: "insertId,logName,timestamp" is CSV: read the log again with gcloud logging read --format=json`, cli.ExitUsage},
		"a ZIP file":                  {"PK\x03\x04\x14\x00", ": it is a ZIP file; unpack it first: unzip -p FILE | pitstop VERB -", cli.ExitUsage},
		"bzip2":                       {"BZh91AY&SY", ": it is packed with bzip2; unpack it first: bzip2 -dc FILE | pitstop VERB -", cli.ExitUsage},
		"xz":                          {"\xfd7zXZ\x00\x00", ": it is packed with xz; unpack it first: xz -dc FILE | pitstop VERB -", cli.ExitUsage},
		"zstd":                        {"\x28\xb5\x2f\xfd\x04\x00", ": it is packed with zstd; unpack it first: zstd -dc FILE | pitstop VERB -", cli.ExitUsage},
		"Avro":                        {"Obj\x01\x02\x16", ": it is an Avro file; read the log again with gcloud logging read --format=json", cli.ExitUsage},
		"Parquet":                     {"PAR1\x15\x04", ": it is a Parquet file; read the log again with gcloud logging read --format=json", cli.ExitUsage},
		"gzip that is no gzip":        {"\x1f\x8b\x08", ": it is packed with gzip: ", cli.ExitUsage},
	} {
		for _, verb := range []string{"explain", "report", "replay"} {
			out, errOut, code := call(t, c.text, verb, "-")
			if code != c.code || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, c.says) || strings.Contains(out, "no TPU was lost") {
				t.Errorf("%s of %s: exit code %d, %q, want %d with %q\n%s", verb, name, code, errOut, c.code, c.says, out)
			}
			if c.code != cli.ExitFailed {
				continue
			}
			// A good entry beside it is read, and the other one counted.
			out, errOut, code = call(t, entriestest.Preempted("2")+"\n"+c.text, verb, "-")
			if code != cli.ExitFailed || !strings.Contains(errOut, ":2: ") || !strings.Contains(out, "preempt") {
				t.Errorf("%s of %s behind an entry: exit code %d, %q\n%s", verb, name, code, errOut, out)
			}
		}
	}
}

// TestADownloadOfGzipThatWasCutIsReadAsFarAsItGoes.
func TestADownloadOfGzipThatWasCutIsReadAsFarAsItGoes(t *testing.T) {
	t.Setenv("COLUMNS", "300")
	packed := zipped(t, strings.Join(reversed(manyLosses("0a0a0a0a", 5000, 1e9)), "\n"))
	file := filepath.Join(t.TempDir(), "entries.json.gz")
	if err := os.WriteFile(file, []byte(packed[:len(packed)*2/3]), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := call(t, "", "report", file)
	if code != cli.ExitFailed || !strings.Contains(out, " losses: ") || !strings.Contains(errOut, "the rest cannot be read: it is packed with gzip: unexpected EOF") {
		t.Errorf("exit code %d, %q\n%.500s", code, errOut, out)
	}
}

// TestManyFaultsAreCounted: the first ones are told, and how many others there are.
func TestManyFaultsAreCounted(t *testing.T) {
	text := entriestest.Preempted("2") + "\n" + strings.Repeat("{\"logName\":7}\n", 3000)
	for verb, most := range map[string]int{"report": 21, "replay": 21} {
		_, errOut, code := call(t, text, verb, "-")
		if n := strings.Count(errOut, "\n"); code != cli.ExitFailed || n != most || !strings.Contains(errOut, "2,980 more that could not be read") {
			t.Errorf("%s: exit code %d, %d lines:\n%.2000s", verb, code, n, errOut)
		}
	}
}

// TestAListingInUTF16IsRead: PowerShell writes the lists of gcloud like the entries.
func TestAListingInUTF16IsRead(t *testing.T) {
	list := `[{"name":"projects/mine/locations/us-west4-a/nodes/llama-8b","acceleratorType":"v5litepod-32","id":"7711","createTime":"2026-11-01T00:00:00Z"}]`
	file := entriestest.Write(t, "nodes.json", wide(list, binary.LittleEndian, true))
	out, errOut, code := call(t, entriestest.Preempted("2"), "replay", "-", "--fleet", file)
	if code != cli.ExitDone || errOut != "" || !strings.Contains(out, "workload mine/llama-8b") {
		t.Errorf("exit code %d, %q\n%s", code, errOut, out)
	}
}
