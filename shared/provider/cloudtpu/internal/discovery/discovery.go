// Package discovery checks calls and answers against the API's own description, for tests. The descriptions are the
// discovery documents of the Cloud TPU API next to the generated clients.
package discovery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Document is the description of a version of the API.
type Document struct {
	Version    string              `json:"version"`
	Schemas    map[string]*Schema  `json:"schemas"`
	Parameters map[string]*Schema  `json:"parameters"`
	Resources  map[string]resource `json:"resources"`
	methods    []*Method
}

// Schema is the description of a value.
type Schema struct {
	Type       string             `json:"type"`
	Format     string             `json:"format"`
	Ref        string             `json:"$ref"`
	Enum       []string           `json:"enum"`
	ReadOnly   bool               `json:"readOnly"`
	Required   bool               `json:"required"`
	Location   string             `json:"location"`
	Properties map[string]*Schema `json:"properties"`
	Items      *Schema            `json:"items"`
	Additional *Schema            `json:"additionalProperties"`
}

type resource struct {
	Methods   map[string]*Method  `json:"methods"`
	Resources map[string]resource `json:"resources"`
}

// Method is the description of one method.
type Method struct {
	ID         string             `json:"id"`
	HTTPMethod string             `json:"httpMethod"`
	FlatPath   string             `json:"flatPath"`
	Parameters map[string]*Schema `json:"parameters"`
	Request    *Schema            `json:"request"`
	Response   *Schema            `json:"response"`

	path *regexp.Regexp
}

// Load and LoadLegacy read the documents of v2alpha1 and v1 from the module of the clients.
var (
	Load       = sync.OnceValues(func() (*Document, error) { return load("v2alpha1") })
	LoadLegacy = sync.OnceValues(func() (*Document, error) { return load("v1") })
)

// versions are all documents.
var versions = map[string]func() (*Document, error){
	"v2alpha1": Load, "v1": LoadLegacy,
	"v2":       sync.OnceValues(func() (*Document, error) { return load("v2") }),
	"v1alpha1": sync.OnceValues(func() (*Document, error) { return load("v1alpha1") }),
}

// Version reads the document of a version.
func Version(version string) (*Document, error) {
	read, ok := versions[version]
	if !ok {
		return nil, fmt.Errorf("there is no version %q", version)
	}
	return read()
}

func load(version string) (*Document, error) {
	find := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Dir}}", "google.golang.org/api")
	out, err := find.Output()
	if err != nil {
		return nil, fmt.Errorf("find the module of the client: %w", err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "tpu", version, "tpu-api.json")) //nolint:gosec // the versions are named here
	if err != nil {
		return nil, fmt.Errorf("discovery document: %w", err)
	}
	var d Document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("discovery document: %w", err)
	}
	d.collect(d.Resources)
	slices.SortFunc(d.methods, func(a, b *Method) int { return strings.Compare(a.ID, b.ID) })
	return &d, nil
}

var placeholder = regexp.MustCompile(`\{\w+\}`)

func (d *Document) collect(all map[string]resource) {
	for _, r := range all {
		for _, m := range r.Methods {
			var pattern strings.Builder
			rest := m.FlatPath
			for rest != "" {
				at := placeholder.FindStringIndex(rest)
				if at == nil {
					pattern.WriteString(regexp.QuoteMeta(rest))
					break
				}
				pattern.WriteString(regexp.QuoteMeta(rest[:at[0]]) + `[^/:]+`)
				rest = rest[at[1]:]
			}
			m.path = regexp.MustCompile("^/" + pattern.String() + "$")
			d.methods = append(d.methods, m)
		}
		d.collect(r.Resources)
	}
}

// Methods are the IDs of all methods, in order.
func (d *Document) Methods() []string {
	ids := make([]string, len(d.methods))
	for i, m := range d.methods {
		ids[i] = m.ID
	}
	return ids
}

// Method finds the method of a call, or nil.
func (d *Document) Method(r *http.Request) *Method {
	for _, m := range d.methods {
		if m.HTTPMethod == r.Method && m.path.MatchString(r.URL.Path) {
			return m
		}
	}
	return nil
}

// Transport passes calls on and checks them and their answers against the document. It reports misfits, and the ID of every
// method that answered.
func (d *Document) Transport(next http.RoundTripper, fault func(error), called func(id string)) http.RoundTripper {
	return &transport{d, next, fault, called}
}

type transport struct {
	d      *Document
	next   http.RoundTripper
	fault  func(error)
	called func(string)
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	m := t.d.Method(r)
	if m == nil {
		t.fault(fmt.Errorf("%s %s is no method", r.Method, r.URL.Path))
		return t.next.RoundTrip(r)
	}
	if err := t.d.checkCall(m, r); err != nil {
		t.fault(fmt.Errorf("call of %s: %w", m.ID, err))
	}
	res, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	if t.called != nil {
		t.called(m.ID)
	}
	if err := t.d.checkAnswer(m, res.StatusCode, body); err != nil {
		t.fault(fmt.Errorf("answer of %s: %w: %s", m.ID, err, body))
	}
	return res, nil
}

func (d *Document) checkCall(m *Method, r *http.Request) error {
	var errs []error
	for name, values := range r.URL.Query() {
		p := m.Parameters[name]
		if p == nil {
			p = d.Parameters[name]
		}
		switch {
		case p == nil || p.Location != "query":
			errs = append(errs, fmt.Errorf("unknown parameter %s", name))
		case p.Type == "integer":
			if _, err := strconv.Atoi(values[0]); err != nil {
				errs = append(errs, fmt.Errorf("parameter %s is no number", name))
			}
		}
	}
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	switch {
	case m.Request == nil && len(body) > 0:
		errs = append(errs, errors.New("it takes no body"))
	case m.Request != nil && len(body) > 0:
		errs = append(errs, d.checkJSON(m.Request, body, true))
	}
	return errors.Join(errs...)
}

func (d *Document) checkAnswer(m *Method, status int, body []byte) error {
	if status == http.StatusOK {
		return d.checkJSON(m.Response, body, false)
	}
	var e struct {
		Error *struct {
			Code    int               `json:"code"`
			Message string            `json:"message"`
			Status  string            `json:"status"`
			Details []json.RawMessage `json:"details"`
		} `json:"error"`
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return err
	}
	if e.Error == nil || e.Error.Code != status || e.Error.Message == "" || e.Error.Status == "" {
		return errors.New("not an error of google.rpc")
	}
	return nil
}

func (d *Document) checkJSON(s *Schema, body []byte, sent bool) error {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	return errors.Join(d.check(s, v, "", sent)...)
}

// check walks a value. A request must not hold fields that only the API may set.
func (d *Document) check(s *Schema, v any, at string, sent bool) (errs []error) {
	bad := func(format string, args ...any) []error {
		return append(errs, fmt.Errorf("%s: "+format, append([]any{at}, args...)...))
	}
	if s.Ref != "" {
		if s = d.Schemas[s.Ref]; s == nil {
			return bad("the document does not describe it")
		}
	}
	switch s.Type {
	case "object":
		m, ok := v.(map[string]any)
		if !ok {
			return bad("%v is no object", v)
		}
		if s.Additional != nil && s.Additional.Type == "any" {
			return d.checkAny(m, at, sent)
		}
		return d.checkFields(s, m, at, sent)
	case "array":
		list, ok := v.([]any)
		if !ok {
			return bad("%v is no list", v)
		}
		for i, item := range list {
			errs = append(errs, d.check(s.Items, item, at+"["+strconv.Itoa(i)+"]", sent)...)
		}
	case "string":
		text, ok := v.(string)
		if !ok {
			return bad("%v is no string", v)
		}
		return append(errs, checkString(s, text, at)...)
	case "integer", "number":
		if _, ok := v.(float64); !ok {
			return bad("%v is no number", v)
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			return bad("%v is neither true nor false", v)
		}
	}
	return errs
}

// checkFields checks the fields of an object.
func (d *Document) checkFields(s *Schema, m map[string]any, at string, sent bool) (errs []error) {
	for name, value := range m {
		p := s.Properties[name]
		switch {
		case p == nil && s.Additional != nil:
			p = s.Additional
		case p == nil:
			errs = append(errs, fmt.Errorf("%s.%s: no such field", at, name))
			continue
		case sent && p.ReadOnly:
			errs = append(errs, fmt.Errorf("%s.%s: only the API may say that", at, name))
		}
		errs = append(errs, d.check(p, value, at+"."+name, sent)...)
	}
	return errs
}

// checkAny checks a value that names its own type.
func (d *Document) checkAny(m map[string]any, at string, sent bool) []error {
	name, _ := m["@type"].(string)
	for _, version := range []string{"v1", "v1alpha1", "v2", "v2alpha1"} {
		if other, err := Version(version); version != d.Version && err == nil && strings.Contains(name, "."+version+".") {
			return other.checkAny(m, at, sent) // an operation of the other version
		}
	}
	name = name[strings.LastIndexAny(name, "./")+1:]
	s := d.Schemas[name]
	if s == nil {
		return []error{fmt.Errorf("%s: no type %q", at, m["@type"])}
	}
	fields := map[string]any{}
	for k, v := range m {
		if k != "@type" {
			fields[k] = v
		}
	}
	return d.check(s, fields, at, sent)
}

var duration = regexp.MustCompile(`^-?\d+(\.\d{1,9})?s$`)

func checkString(s *Schema, text, at string) []error {
	ok := true
	switch s.Format {
	case "int64":
		_, err := strconv.ParseInt(text, 10, 64)
		ok = err == nil
	case "google-datetime":
		_, err := time.Parse(time.RFC3339Nano, text)
		ok = err == nil && strings.HasSuffix(text, "Z")
	case "google-duration":
		ok = duration.MatchString(text)
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, text) {
		ok = false
	}
	if !ok {
		return []error{fmt.Errorf("%s: %q is no %s %s", at, text, s.Format, strings.Join(s.Enum, "|"))}
	}
	return nil
}
