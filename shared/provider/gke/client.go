package gke

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/provider"
)

// Client lists what a cluster has, by plain HTTP: four lists need no library.
type Client struct {
	HTTP *http.Client
	// URL is the cluster's endpoint, Namespace the one to read (empty: all), and Token makes the bearer token.
	URL, Namespace string
	Token          func(ctx context.Context) (string, error)
	// Page is how many objects an answer has at most: 500 when zero.
	Page int
}

// jobSetAPI is the version of JobSet's API that is read.
const jobSetAPI = "jobset.x-k8s.io/v1alpha2"

// mostBytes bounds an answer. A Pod has a few KiB, and a page at most 500.
const mostBytes = 32 << 20

// List reads the Jobs, JobSets, Pods of Jobs and TPU machines of the cluster: four lists, however many objects there are. A cluster
// without JobSet has no JobSets; where a Job belongs to one all the same, the list fails. Errors are *provider.Error.
func (c Client) List(ctx context.Context) (o Objects, err error) {
	in := ""
	if c.Namespace != "" {
		in = "/namespaces/" + url.PathEscape(c.Namespace)
	}
	if o.Jobs, err = list[Job](ctx, c, "/apis/batch/v1"+in+"/jobs", ""); err != nil {
		return Objects{}, err
	}
	o.JobSets, err = list[JobSet](ctx, c, "/apis/"+jobSetAPI+in+"/jobsets", "")
	var no *provider.Error
	switch {
	case err == nil:
	case !errors.As(err, &no) || no.Class != incident.NotFound:
		return Objects{}, err
	default:
		for _, j := range o.Jobs {
			if j.owner("JobSet") != "" {
				return Objects{}, &provider.Error{Call: no.Call, Class: incident.Transient, Cause: err, Message: fmt.Sprintf(
					"the Job %s/%s belongs to the JobSet %s, and this cluster lists no JobSets of %s: %s", j.Namespace, j.Name, j.controller("JobSet").Name, jobSetAPI, no.Message)}
			}
		}
	}
	if o.Pods, err = list[Pod](ctx, c, "/api/v1"+in+"/pods", "batch.kubernetes.io/job-name"); err != nil {
		return Objects{}, err
	}
	if o.Nodes, err = list[Node](ctx, c, "/api/v1/nodes", labelAccelerator); err != nil {
		return Objects{}, err
	}
	return o, nil
}

// list reads a list page by page. Where the rest of a list has expired, it begins once more.
func list[T any](ctx context.Context, c Client, path, selector string) ([]T, error) {
	var all []T
	token, again := "", false
	for {
		q := url.Values{"limit": {strconv.Itoa(cmp.Or(c.Page, 500))}}
		if selector != "" {
			q.Set("labelSelector", selector)
		}
		if token != "" {
			q.Set("continue", token)
		}
		var page struct {
			Kind string `json:"kind"`
			Meta struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []T `json:"items"`
		}
		switch code, err := c.get(ctx, path, q, &page); {
		case code == http.StatusGone && token != "" && !again:
			all, token, again = nil, "", true
			continue
		case err != nil:
			return nil, err
		}
		if !strings.HasSuffix(page.Kind, "List") {
			return nil, &provider.Error{Call: "list " + path, Class: incident.Transient, Message: fmt.Sprintf("the answer is no list: its kind is %.40q", page.Kind)}
		}
		all = append(all, page.Items...)
		if token = page.Meta.Continue; token == "" {
			return all, nil
		}
	}
}

// get makes a call and reads its answer.
func (c Client) get(ctx context.Context, path string, q url.Values, into any) (code int, err error) {
	fail := func(class incident.FailureClass, message string, cause error) error {
		return &provider.Error{Call: "list " + path, Class: class, Message: message, Cause: cause}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+path+"?"+q.Encode(), http.NoBody)
	if err != nil {
		return 0, fail(incident.Invalid, err.Error(), err)
	}
	req.Header.Set("Accept", "application/json")
	if c.Token != nil {
		token, err := c.Token(ctx)
		if err != nil {
			return 0, fail(incident.Transient, "there is no token: "+err.Error(), err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return 0, fail(incident.Transient, err.Error(), err)
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(io.LimitReader(res.Body, mostBytes+1))
	switch {
	case err != nil:
		return res.StatusCode, fail(incident.Transient, err.Error(), err)
	case len(body) > mostBytes:
		return res.StatusCode, fail(incident.Invalid, fmt.Sprintf("the answer has more than %d MiB", mostBytes>>20), nil)
	case res.StatusCode == http.StatusOK:
		if err := json.Unmarshal(body, into); err != nil {
			return res.StatusCode, fail(incident.Transient, "the answer cannot be read: "+err.Error(), err)
		}
		return res.StatusCode, nil
	}
	var status struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(body, &status) //nolint:errcheck // a page that is not the API's has no message
	return res.StatusCode, fail(classOf(res.StatusCode), cmp.Or(status.Message, "answer "+strconv.Itoa(res.StatusCode)), nil)
}

// classOf is the class of a refusal.
func classOf(code int) incident.FailureClass {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return incident.Permission
	case http.StatusNotFound:
		return incident.NotFound
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity:
		return incident.Invalid
	}
	return incident.Transient
}
