package cloudtpu_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// silent is a transport in whose answers some nodes do not show what maintenance is announced to them.
type silent struct {
	http.RoundTripper
	nodes string
}

func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.RoundTripper.RoundTrip(r)
	if err != nil || !strings.Contains(r.URL.Path, "/nodes") {
		return resp, err
	}
	var body map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		return nil, err
	}
	nodes, ok := body["nodes"].([]any)
	if !ok {
		nodes = []any{body}
	}
	for _, n := range nodes {
		if n, ok := n.(map[string]any); ok {
			if name, ok := n["name"].(string); ok && strings.Contains(s.nodes, path.Base(name)) {
				delete(n, "upcomingMaintenance")
			}
		}
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// TestAQueuedResourceTellsOfMaintenanceThatItsNodesDoNotShow holds what each slice is read to announce, in a listing and on
// its own: "unread" where that could not be told, and how often the queued resource was asked.
func TestAQueuedResourceTellsOfMaintenanceThatItsNodesDoNotShow(t *testing.T) {
	n := events.Notice{Status: events.NoticePending, CanReschedule: true, WindowStart: start.Add(24 * time.Hour), WindowEnd: start.Add(28 * time.Hour)}
	for name, c := range map[string]struct {
		// announced are the nodes to which maintenance is announced, silent those of them that do not show it.
		announced, silent string
		fails             bool
		list, read        map[string]string
		asked, askedAlone int
	}{
		"nothing is announced": {"", "", false, map[string]string{}, map[string]string{}, 0, 2},
		"all show it": {
			"a b single alone", "", false,
			map[string]string{"a": "told", "b": "told", "single": "told", "alone": "told"},
			map[string]string{"a": "told", "b": "told", "single": "told", "alone": "told"},
			2, 0,
		},
		"one does not": {"a b", "b", false, map[string]string{"a": "told", "b": "told"}, map[string]string{"a": "told", "b": "told"}, 1, 1},
		"one has none": {"a", "", false, map[string]string{"a": "told"}, map[string]string{"a": "told"}, 1, 1},
		"it cannot be asked": {
			"a b", "b", true, map[string]string{"a": "told", "b": "unread"}, map[string]string{"a": "told", "b": "unread"}, 1, 1,
		},
		"a node outside": {"alone", "", false, map[string]string{"alone": "told"}, map[string]string{"alone": "told"}, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			clock := cloudtputest.NewManualClock(start)
			a := cloudtputest.New(cloudtputest.Config{Project: project, Clock: clock, Zones: map[string]int{home: cloudtputest.Unlimited}})
			asked := &calls{n: map[string]int{}}
			a.Observe(asked.add)
			p, err := cloudtpu.New(t.Context(), option.WithHTTPClient(&http.Client{Transport: silent{a.Transport(), c.silent}}))
			must(t, err)
			must(t, a.AddQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "two", Nodes: []cloudtputest.NodeConfig{order("a"), order("b")}}))
			must(t, a.AddQueuedResource(cloudtputest.QueuedConfig{Zone: home, Name: "one", Nodes: []cloudtputest.NodeConfig{order("single")}}))
			_, err = a.AddNode(order("alone"))
			must(t, err)
			for node := range strings.FieldsSeq(c.announced) {
				must(t, a.Announce(home, node, n))
			}
			if c.fails {
				a.Inject(cloudtputest.Fault{Method: "GetMaintenanceInfo", Times: -1, Code: 14, Message: "later"})
			}
			asked.since()
			list, err := p.List(t.Context(), project, home)
			must(t, err)
			if d := cmp.Diff(c.list, notices(list.Slices...)); d != "" {
				t.Errorf("listing (-want +got):\n%s", d)
			}
			if got := asked.since()["GetMaintenanceInfo"]; got != c.asked {
				t.Errorf("a listing asks %d times, want %d", got, c.asked)
			}
			var alone []provider.Slice
			for _, node := range []string{"a", "b", "single", "alone"} {
				s, err := p.Read(t.Context(), ref(node))
				must(t, err)
				alone = append(alone, s)
			}
			if d := cmp.Diff(c.read, notices(alone...)); d != "" {
				t.Errorf("readings (-want +got):\n%s", d)
			}
			if got := asked.since()["GetMaintenanceInfo"]; got != c.askedAlone {
				t.Errorf("readings ask %d times, want %d", got, c.askedAlone)
			}
		})
	}
}

func notices(slices ...provider.Slice) map[string]string {
	out := map[string]string{}
	for _, s := range slices {
		switch {
		case s.Notice != nil:
			out[s.Name] = "told"
		case s.NoticeUnread:
			out[s.Name] = "unread"
		}
		if s.Evidence("").NoticeUnread != s.NoticeUnread {
			out[s.Name] = "told otherwise"
		}
	}
	return out
}
