package cloudtpu

import (
	"errors"
	"path"

	"google.golang.org/api/googleapi"
	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/topology"
)

// hidden holds the metadata values that an error may repeat.
type hidden struct{ provider.Hidden }

// hide collects the values that an error of a call with these nodes may repeat.
func hide(r provider.Ref, nodes ...*api.Node) hidden {
	h := hidden{provider.Hidden{
		Noun: "metadata value of", Values: map[string]string{}, Known: []string{r.Project, r.Zone, topology.Region(r.Zone), r.Name, r.QueuedResource},
	}}
	for _, n := range nodes {
		if n == nil {
			continue
		}
		h.Known = append(h.Known, n.AcceleratorType, n.RuntimeVersion, path.Base(n.Name))
		for key, value := range n.Metadata {
			if other, ok := h.Values[key]; ok && other != value {
				value += "\n" + other
			}
			h.Values[key] = value
		}
	}
	return h
}

// hideQueued does the same for the nodes of a queued resource.
func hideQueued(r provider.Ref, q *api.QueuedResource) hidden {
	var nodes []*api.Node
	if q.Tpu != nil {
		for _, s := range q.Tpu.NodeSpec {
			nodes = append(nodes, s.Node)
		}
	}
	return hide(r, nodes...)
}

// of masks the message of a failure; raw is the API's own text.
func (h hidden) of(f evidence.Failure, raw string) evidence.Failure {
	if masked := h.Mask(raw); masked != raw {
		f.Message = plain(masked)
	}
	return f
}

// said is the API's text in an error.
func said(err error) string {
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		return answer.Message
	}
	if s, ok := errors.AsType[grpcError](err); ok {
		return s.GRPCStatus().Message()
	}
	return ""
}
