package backlog

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/option"

	"pitstop.internal/shared/view"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// monitoring answers as Cloud Monitoring does: the newest point of a series first, the numbers as text, and no series without data.
func monitoring(t *testing.T, figures map[string][]string) *Reader {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.Path != "/v3/projects/mine/timeSeries" || q.Get("interval.endTime") != "2026-03-01T12:00:00Z" || q.Get("interval.startTime") != "2026-03-01T11:50:00Z" {
			http.Error(w, `{"error": {"code": 400, "message": "not asked as the API wants it"}}`, http.StatusBadRequest)
			return
		}
		var series []any
		for subscription, points := range figures {
			metric := oldest
			if strings.HasSuffix(subscription, DeadLetters) {
				metric = kept
			}
			if !strings.Contains(q.Get("filter"), `metric.type="`+metric+`"`) || !strings.Contains(q.Get("filter"), `"`+subscription+`"`) {
				continue
			}
			var all []any
			for _, p := range points {
				all = append(all, map[string]any{"value": map[string]any{"int64Value": p}})
			}
			series = append(series, map[string]any{"resource": map[string]any{"labels": map[string]any{"subscription_id": subscription}}, "points": all})
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(map[string]any{"timeSeries": series}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	c := Config{Subscriptions: map[string]string{"recreate-requests": "b-recreate", "log-events": "b-logevent"}}
	return c.Open("mine", option.WithEndpoint(server.URL), option.WithoutAuthentication())
}

func TestTheNewestFigureOfEachFunctionIsRead(t *testing.T) {
	r := monitoring(t, map[string][]string{"b-recreate": {"840", "780"}, "b-logevent" + DeadLetters: {"2", "9"}, "another": {"5"}})
	got, err := r.Queues(t.Context(), noon)
	want := []view.Queue{{Topic: "log-events", DeadLetters: 2}, {Topic: "recreate-requests", Oldest: noon.Add(-14 * time.Minute)}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, queues (-want +got):\n%s", err, diff)
	}
}

func TestAReadThatIsRefusedNamesWhatCannotBeRead(t *testing.T) {
	r := monitoring(t, nil)
	_, err := r.Queues(t.Context(), noon.Add(time.Hour))
	if err == nil || err.Error() != "read oldest_unacked_message_age of mine: HTTP status 400: not asked as the API wants it" {
		t.Errorf("error %v", err)
	}
}

func TestWithoutSubscriptionsThereIsNothingToAsk(t *testing.T) {
	if r := (Config{}).Open("mine"); r != nil {
		t.Errorf("a reader of %v", r.subscriptions)
	}
}
