package gke

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/provider"
)

// Restart implements provider.Restarter: it deletes the Pods of Jobs, each by its UID. The Jobs make them anew, or their JobSet makes the
// Jobs anew. All is read again before, because the deletion of a Pod spends a restart.
func (c *Clusters) Restart(ctx context.Context, of []provider.Ref, before time.Time) error {
	if len(of) == 0 {
		return &provider.Error{Call: "restart", Class: incident.Invalid, Message: "no Job is named"}
	}
	t, err := c.target("restart", provider.Ref{Project: of[0].Project, Zone: of[0].Zone, Name: of[0].Name})
	if err != nil {
		return err
	}
	o, unread, err := c.read(ctx, t.cluster)
	if failed := cmp.Or(err, unread); failed != nil {
		return failed
	}
	var gangs []Reading
	readings := Readings(o, t.cluster.Location, t.cluster.Name, c.now())
	for _, r := range of {
		i := slices.IndexFunc(readings, func(s Reading) bool { return s.Scope == r.Zone && s.Name == r.Name && r.Zone == t.zone })
		if i < 0 || r.Life == "" || readings[i].Incarnation.ID != r.Life {
			return &provider.Error{Call: t.call("restart"), Class: incident.NotFound, Code: incident.CodeOtherLife, Message: "the Job " + r.Name + " is another one by now, or gone"}
		}
		gangs = append(gangs, readings[i])
	}
	var old []Pod
	for _, p := range o.Pods {
		lives := slices.ContainsFunc(gangs, func(g Reading) bool { return g.Incarnation.ID == p.owner(kindJob) })
		if lives && !p.ended() && p.Deleted == nil && p.Created.Before(before.Truncate(time.Second)) {
			old = append(old, p)
		}
	}
	if len(old) == 0 {
		return nil // an earlier call has deleted them
	}
	for _, g := range gangs {
		if g.State != Ready || !g.Restartable {
			return &provider.Error{Call: t.call("restart"), Class: incident.NotInState, Message: "no restart is left to " + g.Name + ", or its Pods do not all run: it is " + string(g.State) + ", " + g.Why}
		}
	}
	var faults []error
	for _, p := range old {
		faults = append(faults, c.deletePod(ctx, t, p))
	}
	return errors.Join(faults...)
}

// deletePod deletes a Pod by its UID, with the time to end that its owner gives it. One that is gone, or another one by now, needs no
// deletion: the others of its gang went with it.
func (c *Clusters) deletePod(ctx context.Context, t target, p Pod) error {
	what := "delete Pod " + p.Name + " in " + t.zone
	body, err := json.Marshal(deleteOptions{"DeleteOptions", "v1", preconditions{p.UID}, "Background"})
	if err != nil {
		return &provider.Error{Call: what, Class: incident.Invalid, Message: err.Error(), Cause: err}
	}
	code, err := c.change(ctx, t, what, http.MethodDelete, "/api/v1/namespaces/"+p.Namespace+"/pods/"+p.Name, nil, body, provider.Hidden{})
	if code == http.StatusNotFound || code == http.StatusConflict { // the UID is the only condition
		return nil
	}
	return err
}
