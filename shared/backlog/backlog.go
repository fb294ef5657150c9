// Package backlog asks Cloud Monitoring how long messages wait for Pitstop's functions, and how many were given up.
package backlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/api/googleapi"
	api "google.golang.org/api/monitoring/v3"
	"google.golang.org/api/option"

	"pitstop.internal/shared/view"
)

// Config names what is asked about.
type Config struct {
	// Subscriptions has the subscription of each topic that a function reads: TOPIC:SUBSCRIPTION, separated by commas. Empty asks nothing.
	Subscriptions map[string]string `env:"SUBSCRIPTIONS"`
}

// DeadLetters is what the name of the subscription with a function's dead letters ends in, after the name of its own subscription.
const DeadLetters = "-dead-letters"

const (
	// callTimeout bounds each call: the generated client has no bound of its own.
	callTimeout = 10 * time.Second
	// lately is how far back a figure counts. Google takes one a minute, and shows it up to four minutes later.
	lately = 10 * time.Minute

	oldest = "pubsub.googleapis.com/subscription/oldest_unacked_message_age"
	kept   = "pubsub.googleapis.com/subscription/num_undelivered_messages"
)

// Reader reads the figures of one deployment. It is safe for concurrent use.
type Reader struct {
	project       string
	subscriptions map[string]string
	opts          []option.ClientOption

	mu  sync.Mutex
	svc *api.Service
}

// Open returns the reader of a project's subscriptions, and nil where none are named. The client is made at the first call.
func (c Config) Open(project string, opts ...option.ClientOption) *Reader {
	if len(c.Subscriptions) == 0 {
		return nil
	}
	return &Reader{project: project, subscriptions: c.Subscriptions, opts: opts}
}

// Queues reads what waits for each function, in the order of their topics. What Google has no figure of counts as empty.
//
// Permission: monitoring.timeSeries.list on the project.
// https://cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.timeSeries/list
func (r *Reader) Queues(ctx context.Context, now time.Time) ([]view.Queue, error) {
	svc, err := r.service(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var own, dead []string
	for _, s := range r.subscriptions {
		own, dead = append(own, s), append(dead, s+DeadLetters)
	}
	ages, err := r.newest(ctx, svc, now, oldest, own)
	if err != nil {
		return nil, err
	}
	letters, err := r.newest(ctx, svc, now, kept, dead)
	if err != nil {
		return nil, err
	}
	var all []view.Queue
	for _, topic := range slices.Sorted(maps.Keys(r.subscriptions)) {
		s := r.subscriptions[topic]
		q := view.Queue{Topic: topic, DeadLetters: int(letters[s+DeadLetters])}
		if age := ages[s]; age > 0 {
			q.Oldest = now.Add(-time.Duration(age) * time.Second)
		}
		all = append(all, q)
	}
	return all, nil
}

// newest reads the newest figure of each subscription.
func (r *Reader) newest(ctx context.Context, svc *api.Service, now time.Time, metric string, subscriptions []string) (map[string]int64, error) {
	slices.Sort(subscriptions)
	quoted := make([]string, len(subscriptions))
	for i, s := range subscriptions {
		quoted[i] = fmt.Sprintf("%q", s)
	}
	filter := fmt.Sprintf(`metric.type=%q AND resource.labels.subscription_id=one_of(%s)`, metric, strings.Join(quoted, ","))
	found := map[string]int64{}
	// The answer has the newest point of a series first.
	err := svc.Projects.TimeSeries.List("projects/"+r.project).Filter(filter).View("FULL").
		IntervalStartTime(now.Add(-lately).UTC().Format(time.RFC3339)).IntervalEndTime(now.UTC().Format(time.RFC3339)).
		Pages(ctx, func(page *api.ListTimeSeriesResponse) error {
			for _, s := range page.TimeSeries {
				if s.Resource == nil || len(s.Points) == 0 || s.Points[0].Value == nil || s.Points[0].Value.Int64Value == nil {
					continue
				}
				found[s.Resource.Labels["subscription_id"]] = *s.Points[0].Value.Int64Value
			}
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("read %s of %s: %w", path.Base(metric), r.project, plain(err))
	}
	return found, nil
}

func (r *Reader) service(ctx context.Context) (*api.Service, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.svc != nil {
		return r.svc, nil
	}
	// The client outlives the call: its tokens must not depend on a context that ends with it.
	svc, err := api.NewService(context.WithoutCancel(ctx), append([]option.ClientOption{option.WithScopes(api.MonitoringReadScope)}, r.opts...)...)
	if err != nil {
		return nil, fmt.Errorf("client for Cloud Monitoring: %w", err)
	}
	r.svc = svc
	return svc, nil
}

// plain makes one line of an error of the API.
func plain(err error) error {
	var answer *googleapi.Error
	if !errors.As(err, &answer) {
		return err
	}
	return fmt.Errorf("HTTP status %d: %s", answer.Code, strings.Join(strings.Fields(answer.Message), " "))
}
