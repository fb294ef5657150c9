package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"pitstop.internal/events"
)

// question is one request to a function, and the answer that it has to give.
type question struct {
	name   string
	body   []byte
	status int
	// log is every line that it logs, as severity and message; says is what their reasons have to contain.
	log  []string
	says []string
}

// judge compares an answer with the right one.
func (q question) judge(status int, log []byte) error {
	var logged, reasons []string
	for raw := range strings.Lines(string(log)) {
		var l struct{ Severity, Message, Error, Reason string }
		if err := json.Unmarshal([]byte(raw), &l); err != nil {
			return fmt.Errorf("it logged what is no JSON: %s", strings.TrimSpace(raw))
		}
		logged, reasons = append(logged, l.Severity+" "+l.Message), append(reasons, l.Error+l.Reason)
	}
	why := strings.Join(reasons, "; ")
	switch {
	case status != q.status:
		return fmt.Errorf("it answered %d, not %d, and logged %q: %s", status, q.status, logged, why)
	case !slices.Equal(logged, q.log):
		return fmt.Errorf("it logged %q, not %q: %s", logged, q.log, why)
	}
	for _, part := range q.says {
		if !strings.Contains(why, part) {
			return fmt.Errorf("it logged %q, which does not say %q", why, part)
		}
	}
	return nil
}

// push is the body of a push request.
func push(data []byte, attributes map[string]string) []byte {
	type message struct {
		Data        []byte            `json:"data"`
		Attributes  map[string]string `json:"attributes,omitempty"`
		MessageID   string            `json:"messageId"`
		PublishTime string            `json:"publishTime"`
	}
	body, err := json.Marshal(struct {
		Message      message `json:"message"`
		Subscription string  `json:"subscription"`
	}{message{data, attributes, "1", "2026-11-12T02:14:08Z"}, "projects/demo/subscriptions/verify"})
	if err != nil {
		panic(err) // strings only
	}
	return body
}

// exam is what a function alone is asked: recorded messages, the first of them once more and cut off.
type exam []struct {
	name string
	// file is the message, in events/testdata: a log entry, the first of its file, or an event of ours, whose type is the
	// name of its file.
	file string
	question
}

const (
	ignored  = "DEBUG event ignored"
	rejected = "ERROR event rejected"
	left     = "WARNING event left for redelivery"
)

// refused is the answer to a request that concerns nobody in the ledger.
var refused = question{status: 200, log: []string{"INFO request refused", ignored}, says: []string{"not in the ledger"}}

// exams are the right answers of functions that have their configuration, and a ledger in which nothing is and to which
// nothing can be written. A message from which something follows is left for redelivery then, never acknowledged.
var exams = map[string]exam{
	"maintenance": {
		{"a recorded notice", "maintenance/entries.json", question{status: 500, log: []string{left}, says: []string{"ledger: write"}}},
		{"a recorded notice of patrol's", "events/" + events.TypeMaintenanceNotified + ".json", question{status: 200, log: []string{ignored}, says: []string{"not known"}}},
		{"a recorded preemption", "preemption/entries.json", question{status: 200, log: []string{ignored}, says: []string{"is not a maintenance notice"}}},
	},
	"logevent":   {{"a recorded preemption", "preemption/entries.json", question{status: 500, log: []string{left}, says: []string{"ledger: write"}}}},
	"checkpoint": {{"a recorded request", "events/" + events.TypeCheckpointRequested + ".json", refused}},
	"recovery":   {{"a recorded request", "events/" + events.TypeRecoveryRequested + ".json", refused}},
	"recreate":   {{"a recorded request", "events/" + events.TypeRecreateRequested + ".json", refused}},
	// Nobody is to be told here.
	"notify": {{"a recorded update", "events/" + events.TypeIncidentUpdated + ".json", question{status: 200, log: []string{ignored}, says: []string{"no notification target is configured"}}}},
	"order":  {{"a recorded order", "events/" + events.TypeOperatorOrdered + ".json", question{status: 200, log: []string{ignored}, says: []string{"is not in the ledger"}}}},
	// A tick has no data, so there is none to be recorded or malformed.
	"patrol": nil,
	// People ask it, and no messages.
	"console": nil,
}

// questions returns what a configured function is asked.
func questions(m module, function string) ([]question, error) {
	known, ok := exams[function]
	if !ok {
		return nil, errors.New("the function has no exam: add one to exams in scripts/package/question.go")
	}
	if function == "console" { // it knows nobody here
		return []question{{"a request without an identity", nil, 403, []string{"WARNING identity refused"}, []string{"the request has no identity"}}}, nil
	}
	all := []question{
		{"a message of unknown kind", push([]byte("{}"), attributes("unknown.v1")), 200, []string{ignored}, nil},
		{"a body that is no push message", []byte(`{"hello":"world"}`), 400, []string{"ERROR request without a message"}, nil},
	}
	if function == "patrol" {
		all = append(all, question{"a tick of long ago", push(nil, nil), 200, []string{ignored}, []string{"is too old"}})
	}
	for i, e := range known {
		data, about, err := message(filepath.Join(m.Dir, "events", "testdata", filepath.FromSlash(e.file)))
		if err != nil {
			return nil, err
		}
		e.question.name, e.body = e.name, push(data, about)
		all = append(all, e.question)
		if i == 0 {
			all = append(all, question{e.name + ", cut off", push(data[:len(data)/2], about), 200, []string{rejected}, nil})
		}
	}
	return all, nil
}

// message reads a recorded message and its attributes.
func message(name string) (data []byte, about map[string]string, err error) {
	data, err = os.ReadFile(name)
	if err != nil || filepath.Base(name) != "entries.json" {
		return data, attributes(strings.TrimSuffix(filepath.Base(name), ".json")), err
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(entries) == 0 {
		return nil, nil, fmt.Errorf("%s: it has no entries", name)
	}
	return entries[0], nil, nil
}

// attributes are those of a message that carries an event of ours.
func attributes(ceType string) map[string]string {
	return map[string]string{"ce-type": ceType, "ce-id": "1", "ce-source": "//pitstop/verify"}
}

// required finds the variables without which a function does not start.
var required = regexp.MustCompile("`env:\"([A-Z_]+), required\"`")

// unconfigured asks a function that has no configuration. It has to name every variable that it needs: its own, and those of each Config that it
// has of another package.
func unconfigured(staged, function string) (question, error) {
	q := question{"no configuration", push([]byte("{}"), attributes("unknown.v1")), 500, []string{"ERROR function not configured"}, nil}
	tree := os.DirFS(staged)
	own, err := fs.ReadFile(tree, path.Join("functions", function, "function.go"))
	if err != nil {
		return q, err
	}
	err = fs.WalkDir(tree, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".go" {
			return err
		}
		if of := path.Base(path.Dir(name)); of != function && !strings.Contains(string(own), of+".Config") {
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		for _, found := range required.FindAllSubmatch(source, -1) {
			q.says = append(q.says, string(found[1]))
		}
		return err
	})
	return q, err
}
