package gke

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
)

// Client lists what a cluster has, deletes and creates Jobs and JobSets, and labels machines, by plain HTTP: so few calls need no library.
type Client struct {
	HTTP *http.Client
	// URL is the cluster's endpoint, Namespace the one to read (empty: all), and Token makes the bearer token.
	URL, Namespace string
	Token          func(ctx context.Context) (string, error)
	// Page is how many objects an answer has at most: 500 when zero.
	Page int

	orders *orders // keeps the manifests of Jobs and JobSets; nil reads none

	without []string // the namespaces that a reading of all leaves out
	tally   *tally   // of the reading that a list belongs to; nil is one of its own
}

// jobSetAPI is the version of JobSet's API that is read.
const jobSetAPI = "jobset.x-k8s.io/v1alpha2"

// mostObjects is how many objects a page has at most.
const mostObjects = 500

// mostBytes bounds an answer. A Pod has a few KiB, so a page has a few MiB. One that is too large is asked for again in halves.
const mostBytes = 32 << 20

// mostPages bounds a list. The largest cluster has fewer Pods than so many pages hold.
const mostPages = 1000

// List reads the Jobs, JobSets, Pods of Jobs and TPU machines of the cluster: four lists, however many objects there are, and the Jobs
// once more where a Pod runs whose Job is not among them. The Slices are another one, where a TPU7x machine or a Job for one is among them.
// What a Job waits in is two more, where one of them waits. A cluster without JobSet has no JobSets; where a Job belongs to one
// all the same, the list fails. A namespace that cannot be read is left out, and named. Errors are *provider.Error.
func (c Client) List(ctx context.Context) (Objects, error) {
	if c.Namespace != "" {
		return c.listAll(ctx, c.Namespace)
	}
	return c.listAll(ctx)
}

// listAll reads a cluster: all namespaces, or those that are named.
func (c Client) listAll(ctx context.Context, namespaces ...string) (o Objects, err error) {
	all := len(namespaces) == 0
	if all {
		namespaces = []string{""}
	}
	c.Namespace = ""
	var read *tally
	out, err := c.leavingOut(func(c Client) (err error) {
		read = c.tally
		o, err = c.listOnce(ctx, namespaces)
		return err
	})
	if err != nil {
		return Objects{}, err
	}
	o.Unread = append(o.Unread, out...)
	if !all && len(o.Unread) == len(namespaces) {
		return Objects{}, reasons(o.Unread)
	}
	c.tally = read
	for _, u := range out {
		c.without = append(c.without, u.Namespace)
	}
	c.addWaits(ctx, &o, slices.DeleteFunc(slices.Clone(namespaces), func(namespace string) bool { return !o.wait(namespace) })...)
	return o, nil
}

// listOnce reads these namespaces, and the machines. One that may not be read does not keep it from the others.
func (c Client) listOnce(ctx context.Context, namespaces []string) (o Objects, err error) {
	read := 0
	for _, c.Namespace = range namespaces {
		if slices.Contains(c.without, c.Namespace) {
			continue
		}
		in, err := c.listIn(ctx)
		var no *unreadable
		switch {
		case err == nil:
			read++
			o.Jobs, o.JobSets, o.Pods = append(o.Jobs, in.Jobs...), append(o.JobSets, in.JobSets...), append(o.Pods, in.Pods...)
		case c.Namespace == "", errors.As(err, &no):
			return o, err
		default:
			o.Unread = append(o.Unread, Unread{c.Namespace, err})
		}
	}
	if read == 0 {
		return o, nil
	}
	return o, c.addMachines(ctx, &o)
}

// addMachines reads the machines, and the Slices where they say something. A cluster that has none, or shows none, is read without them.
func (c Client) addMachines(ctx context.Context, o *Objects) (err error) {
	if o.Nodes, err = list[Node](ctx, c, nodesPath, LabelAccelerator, nil); err != nil {
		return err
	}
	if !slices.ContainsFunc(o.Nodes, func(n Node) bool { return n.Labels[LabelAccelerator] == tpu7x }) &&
		!slices.ContainsFunc(o.Jobs, func(j Job) bool { return j.Spec.Template.Spec.NodeSelector[LabelAccelerator] == tpu7x }) {
		return nil
	}
	o.Slices, err = list[Slice](ctx, c, slicesPath, "", nil)
	var no *provider.Error
	if errors.As(err, &no) && (no.Class == reason.NotFound || no.Class == reason.Permission) {
		return nil
	}
	return err
}

// listIn reads the same in one namespace, without machines and Slices.
func (c Client) listIn(ctx context.Context) (o Objects, err error) {
	in := ""
	if c.Namespace != "" {
		in = "/namespaces/" + url.PathEscape(c.Namespace)
	}
	if o.Jobs, err = list(ctx, c, "/apis/batch/v1"+in+"/jobs", "", func(j *Job, text []byte) { j.order = c.orders.of(kindJob, j.Meta, text) }); err != nil {
		return o, err
	}
	o.JobSets, err = list(ctx, c, "/apis/"+jobSetAPI+in+"/jobsets", "", func(s *JobSet, text []byte) { s.order = c.orders.of(kindJobSet, s.Meta, text) })
	var no *provider.Error
	switch {
	case err == nil:
	case !errors.As(err, &no) || no.Class != reason.NotFound:
		return o, err
	default:
		for _, j := range o.Jobs {
			if j.owner("JobSet") != "" {
				return o, &provider.Error{Call: no.Call, Class: reason.Transient, Cause: err, Message: fmt.Sprintf(
					"the Job %s/%s belongs to the JobSet %s, and this cluster lists no JobSets of %s: %s", j.Namespace, j.Name, j.controller("JobSet").Name, jobSetAPI, no.Message)}
			}
		}
	}
	if o.Pods, err = list[Pod](ctx, c, "/api/v1"+in+"/pods", labelJobName, nil); err != nil {
		return o, err
	}
	return o, c.dropNewer(ctx, in, &o)
}

// dropNewer drops the Pods of Jobs that were made after the Jobs were listed: without it they would count as left by a Job that is gone.
// Only where such a Pod is there and runs, the Jobs are listed once more.
func (c Client) dropNewer(ctx context.Context, in string, o *Objects) error {
	listed := map[string]bool{}
	for _, j := range o.Jobs {
		listed[j.UID] = true
	}
	unknown := func(p Pod) bool {
		uid, _ := p.job()
		return !listed[uid] && p.Deleted == nil && !p.ended() && p.Spec.trains()
	}
	if !slices.ContainsFunc(o.Pods, unknown) {
		return nil
	}
	now, err := list[Job](ctx, c, "/apis/batch/v1"+in+"/jobs", "", nil)
	if err != nil {
		return err
	}
	newer := map[string]bool{}
	for _, j := range now {
		newer[j.UID] = !listed[j.UID]
	}
	o.Pods = slices.DeleteFunc(o.Pods, func(p Pod) bool {
		uid, _ := p.job()
		return newer[uid]
	})
	return nil
}

// page is one page of a list.
type page[T listed] struct {
	kind, next string
	items      []T
	tally      tally
}

// list reads a list page by page. A page that is too large is asked for again in halves. Where the rest of a list has expired, it begins
// once more. Text is handed the text of each item, which it must not keep.
func list[T listed](ctx context.Context, c Client, path, selector string, text func(item *T, text []byte)) ([]T, error) {
	if c.tally == nil {
		c.tally = &tally{}
	}
	most := cmp.Or(c.Page, mostObjects)
	all, sum, token, limit, again := []T(nil), *c.tally, "", most, false
	for range mostPages {
		p := page[T]{}
		code, err := c.get(ctx, path, c.query(path, selector, token, limit), func(body io.Reader) error { return p.read(body, sum, text) })
		switch {
		case code == http.StatusGone && token != "" && !again:
			all, sum, token, again = nil, *c.tally, "", true
			continue
		case errors.Is(err, errLarge) && limit > 1 && len(p.items) <= limit: // otherwise the server does not heed the limit
			sum.text = sum.text.plus(p.tally.text)
			limit /= 2
			continue
		case errors.Is(err, errLarge):
			no := &unreadable{p.tally.text.most(), errLarge.Error()}
			return nil, &provider.Error{Call: "list " + path, Class: reason.Invalid, Message: no.Error(), Cause: no}
		case err != nil:
			return nil, err
		}
		if !strings.HasSuffix(p.kind, "List") {
			return nil, &provider.Error{Call: "list " + path, Class: reason.Transient, Message: fmt.Sprintf("the answer is no list: its kind is %.40q", p.kind)}
		}
		all, sum = append(all, p.items...), sum.plus(p.tally)
		if token = p.next; token == "" {
			*c.tally = sum
			return all, nil
		}
		if p.tally.text.all < mostBytes/4 { // what made a page too large is behind
			limit = min(2*limit, most)
		}
	}
	return nil, &provider.Error{Call: "list " + path, Class: reason.Invalid, Message: fmt.Sprintf("the list has more than %d pages", mostPages)}
}

// nodesPath and slicesPath are the lists of objects that belong to no namespace. The API server refuses to choose among these by one.
const (
	nodesPath  = "/api/v1/nodes"
	slicesPath = "/apis/" + sliceAPI + "/slices"
)

// query asks for a page of a list.
func (c Client) query(path, selector, token string, limit int) url.Values {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	if selector != "" {
		q.Set("labelSelector", selector)
	}
	if token != "" {
		q.Set("continue", token)
	}
	if c.Namespace == "" && len(c.without) > 0 && path != nodesPath && path != slicesPath {
		q.Set("fieldSelector", "metadata.namespace!="+strings.Join(c.without, ",metadata.namespace!="))
	}
	return q
}

// read reads a page from a stream: of the answer no more than one object is in memory. Before is what the lists before it took.
func (p *page[T]) read(body io.Reader, before tally, text func(item *T, text []byte)) error {
	d := jsontext.NewDecoder(body)
	if err := begin(d, jsontext.KindBeginObject); err != nil {
		return err
	}
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadToken()
		if err != nil {
			return err //nolint:wrapcheck // the caller says what was read
		}
		switch name.String() {
		case "kind":
			err = json.UnmarshalDecode(d, &p.kind)
		case "metadata":
			var meta struct {
				Continue string `json:"continue"`
			}
			err = json.UnmarshalDecode(d, &meta)
			p.next = meta.Continue
		case "items":
			err = p.readItems(d, before, text)
		default:
			err = d.SkipValue()
		}
		if err != nil {
			return err //nolint:wrapcheck // likewise
		}
	}
	_, err := d.ReadToken()
	return err //nolint:wrapcheck // likewise
}

func (p *page[T]) readItems(d *jsontext.Decoder, before tally, text func(item *T, text []byte)) error {
	if d.PeekKind() == jsontext.KindNull {
		return d.SkipValue() //nolint:wrapcheck // likewise
	}
	if err := begin(d, jsontext.KindBeginArray); err != nil {
		return err
	}
	for d.PeekKind() != jsontext.KindEndArray {
		raw, err := d.ReadValue()
		if err != nil {
			return err //nolint:wrapcheck // likewise
		}
		var item T
		if err := json.Unmarshal(raw, &item); err != nil {
			return undecoded(raw, err)
		}
		if text != nil {
			text(&item, raw)
		}
		p.items = append(p.items, item)
		if err := p.tally.add(before, item.meta().Namespace, len(raw), weight(item)); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err //nolint:wrapcheck // likewise
}

// begin reads the beginning of an object or of an array.
func begin(d *jsontext.Decoder, kind jsontext.Kind) error {
	t, err := d.ReadToken()
	if err == nil && t.Kind() != kind {
		err = fmt.Errorf("%s stands where %s is expected", t, kind)
	}
	return err //nolint:wrapcheck // likewise
}

// send makes a call, whose answer has to be closed. What says for people what the call does.
func (c Client) send(ctx context.Context, what, method, path string, q url.Values, body []byte) (*http.Response, error) {
	fail := func(class reason.FailureClass, message string, cause error) (*http.Response, error) {
		return nil, &provider.Error{Call: what, Class: class, Message: message, Cause: cause}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path+"?"+q.Encode(), bytes.NewReader(body))
	if err != nil {
		return fail(reason.Invalid, err.Error(), err)
	}
	req.Header.Set("Accept", "application/json")
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	if c.Token != nil {
		token, err := c.Token(ctx)
		if err != nil {
			return fail(reason.Transient, "there is no token: "+err.Error(), err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return fail(reason.Transient, err.Error(), err)
	}
	return res, nil
}

// get makes a call and has its answer read.
func (c Client) get(ctx context.Context, path string, q url.Values, read func(body io.Reader) error) (code int, err error) {
	fail := func(class reason.FailureClass, message string, cause error) error {
		return &provider.Error{Call: "list " + path, Class: class, Message: message, Cause: cause}
	}
	res, err := c.send(ctx, "list "+path, http.MethodGet, path, q, nil)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	body := &io.LimitedReader{R: res.Body, N: mostBytes + 1}
	if res.StatusCode == http.StatusOK {
		switch err := read(body); {
		case body.N <= 0:
			return res.StatusCode, fail(reason.Invalid, errLarge.Error(), errLarge)
		case err != nil:
			return res.StatusCode, fail(reason.Transient, "the answer cannot be read: "+err.Error(), err)
		}
		return res.StatusCode, nil
	}
	var status struct {
		Message string `json:"message"`
	}
	_ = json.UnmarshalRead(body, &status) //nolint:errcheck // a page that is not the API's has no message
	return res.StatusCode, fail(classOf(res.StatusCode), cmp.Or(status.Message, "answer "+strconv.Itoa(res.StatusCode)), nil)
}

// classOf is the class of a refusal.
func classOf(code int) reason.FailureClass {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return reason.Permission
	case http.StatusNotFound:
		return reason.NotFound
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity:
		return reason.Invalid
	}
	return reason.Transient
}
