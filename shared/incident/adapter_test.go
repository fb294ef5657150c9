package incident_test

import (
	"errors"
	"flag"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/shared/heart"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// third has the tests of this package run over the third edition of the heart, as far as an adapter can show its document as the old one.
var third = flag.Bool("third", false, "run over package heart")

// advance is the decision that the tests are about.
func advance(p policy.Policy, w incident.Workload, e incident.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
	if !*third {
		return incident.Advance(p, w, e, now)
	}
	return over.advance(p, w, e, now)
}

// fence is the effect that a request may carry out, and what the document makes of it.
func fence(w incident.Workload, p events.Pointer, now time.Time) (request events.Event, digest string, err error) {
	if !*third {
		x, err := w.Fence(p, now)
		if err != nil {
			return nil, "", err
		}
		return w.Request(x), x.Digest, nil
	}
	h := over.document(w)
	x, err := h.Fence(p, now)
	var refused *heart.RefusedError
	if errors.As(err, &refused) {
		return nil, "", &incident.RefusedError{Code: refused.Code, Text: refused.Text}
	}
	if err != nil {
		return nil, "", err
	}
	return h.Request(x), x.Digest, nil
}

// due is when somebody has to look at the workload by itself.
func due(w incident.Workload) time.Time {
	if !*third {
		return w.Due()
	}
	h := over.document(w)
	return h.Due()
}

// readsOf are the facts that somebody has to go and read.
func readsOf(w incident.Workload, now time.Time) (all incident.Reads) {
	if !*third {
		return w.Reads(now)
	}
	h := over.document(w)
	for _, r := range h.Reads(now) {
		all = append(all, incident.ToRead{
			Kind: incident.ReadKind(r.Kind), Slice: r.Slice, Life: r.Life, Zone: r.Zone, Operation: r.Operation, Since: r.Since, Why: r.Why, Told: r.Told,
		})
	}
	return all
}

// nothingToRetry says why there is nothing to try again.
func nothingToRetry(w incident.Workload, now time.Time) string {
	if !*third {
		return w.NothingToRetry(now)
	}
	return over.document(w).NothingToRetry(now)
}

// reading is one thing to read, as the audit log answers it.
type reading interface {
	Answers(e events.Entry) bool
	Silence(now time.Time) bool
}

// readingsOf are the things of one kind to read about a slice.
func readingsOf(w incident.Workload, now time.Time, kind incident.ReadKind, slice string) (all []reading) {
	if !*third {
		for _, r := range readsOf(w, now).Of(kind, slice) {
			all = append(all, r)
		}
		return all
	}
	h := over.document(w)
	for _, r := range h.Reads(now) {
		if incident.ReadKind(r.Kind) == kind && r.Slice == slice {
			all = append(all, r)
		}
	}
	return all
}

// mayTrainIn is the life of a slice in which training may run. The third edition asks the lease.
func mayTrainIn(w incident.Workload, s incident.Slot) events.Incarnation {
	if !*third {
		return s.Admitted()
	}
	h := over.document(w)
	return h.AdmittedIn(s.Name)
}

// question is what a person is asked.
func question(w incident.Workload) string {
	if !*third {
		return w.Question()
	}
	return over.document(w).Question()
}

// phaseIs is the phase that follows from a document's facts.
func phaseIs(w incident.Workload) incident.Phase {
	if *third {
		return w.Incident.Phase
	}
	return incident.PhaseOf(w)
}

// over keeps the new document beside each old one that was made of it. The schema of the old one numbers it.
var over = adapter{kept: map[int]pair{}}

type adapter struct {
	sync.Mutex
	kept map[int]pair
	last int
}

type pair struct {
	old incident.Workload
	now heart.Workload
}

// firstKept is the first number: no schema is so high.
const firstKept = 1_000_000

func (a *adapter) advance(p policy.Policy, w incident.Workload, e incident.Evidence, now time.Time) (next incident.Workload, sent []events.Event, changed bool) {
	h := a.document(w)
	if f, is := e.(incident.Fitted); is {
		e = heart.Fitted{Origin: f.Origin, Slice: f.Slice, Zones: f.Zones}
	}
	defer func() {
		if r := recover(); r != nil {
			fmt.Printf("the heart panics: %v\n%s", r, debug.Stack())
			next, sent, changed = w, nil, false
		}
	}()
	n, sent, changed := heart.Advance(p, h, e, now)
	if !changed {
		next = w
		next.Slices = slices.Clone(w.Slices)
		if c := w.Closed; c != nil && now.Sub(c.Closed) > incident.Linger {
			next.Closed = nil // nobody writes only to forget it
		}
		next.Unbound = slices.DeleteFunc(slices.Clone(w.Unbound), func(u incident.Unbound) bool { return now.Sub(u.Time) > incident.Linger })
		if showNotices(&next, n, now); !reflect.DeepEqual(w.Slices, next.Slices) {
			a.keep(&next, h)
		}
		return next, sent, false
	}
	next = viewOf(n, now)
	showNotices(&next, n, now)
	a.keep(&next, n)
	return next, sent, true
}

func (a *adapter) keep(o *incident.Workload, h heart.Workload) {
	a.Lock()
	defer a.Unlock()
	a.last++
	o.Schema = firstKept + a.last
	old := *o
	old.Slices, old.Effects = slices.Clone(o.Slices), slices.Clone(o.Effects)
	if o.Incident != nil {
		in := *o.Incident
		old.Incident = &in
	}
	a.kept[o.Schema] = pair{old, h}
}

// document is the new document of an old one. What a test has changed by hand in the old one is changed in the new one too.
func (a *adapter) document(o incident.Workload) heart.Workload {
	a.Lock()
	kept, is := a.kept[o.Schema]
	a.Unlock()
	if !is {
		return from(o)
	}
	if reflect.DeepEqual(kept.old, o) {
		return kept.now
	}
	was, is2, now := tree(from(kept.old)), tree(from(o)), tree(kept.now)
	merged, err := json.Marshal(merge(was, is2, now))
	if err != nil {
		panic(err)
	}
	var h heart.Workload
	if err := json.Unmarshal(merged, &h); err != nil {
		panic(err)
	}
	return h
}

// tree is a document as maps and lists.
func tree(w heart.Workload) (t any) {
	raw, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		panic(err)
	}
	return t
}

// merge takes over what differs between two trees.
func merge(was, is, now any) any {
	if reflect.DeepEqual(was, is) {
		return now
	}
	wasMap, a := was.(map[string]any)
	isMap, b := is.(map[string]any)
	nowMap, c := now.(map[string]any)
	if a && b && c {
		for k := range wasMap {
			if _, still := isMap[k]; !still {
				delete(nowMap, k)
			}
		}
		for k, v := range isMap {
			if m := merge(wasMap[k], v, nowMap[k]); m != nil {
				nowMap[k] = m
			}
		}
		return nowMap
	}
	wasList, a := was.([]any)
	isList, b := is.([]any)
	nowList, c := now.([]any)
	if a && b && c && len(wasList) == len(isList) && len(nowList) == len(isList) {
		for i := range isList {
			nowList[i] = merge(wasList[i], isList[i], nowList[i])
		}
		return nowList
	}
	return is
}

// from makes a new document of an old one.
func from(o incident.Workload) heart.Workload {
	w := heart.New(o.Project, o.Name, o.Provider)
	w.ID, w.Label, w.Directory, w.Seen, w.Epoch, w.Ended = o.ID, o.Label, o.Directory, o.Seen, o.Epoch, o.Ended
	w.Pause, w.Orders, w.Outbox = o.Pause, o.Orders, o.Outbox
	for _, u := range o.Unbound {
		line, err := json.Marshal(u.Report)
		if err != nil {
			panic(err)
		}
		w.Unbound = append(w.Unbound, heart.Unbound{ID: u.ID, Time: u.Time, Slice: u.Slice, Line: line})
	}
	plain := true
	for i := range o.Slices {
		s := &o.Slices[i]
		n := heart.Slot{Name: s.Name, Life: lifeFrom(s.Life)}
		if s.Order != (incident.Order{}) {
			n.Order = heart.Order{Accelerator: s.Order.Accelerator, Spec: s.Order.Spec, SpecZone: s.Order.Zone}
		}
		for _, l := range s.Former {
			former := lifeFrom(l)
			if former.Condition == incident.Unread || former.Zone == s.Zone {
				former.Condition = incident.Gone // the old document does not keep what became of it
			}
			n.Former = append(n.Former, former)
			plain = plain && l.Admission != incident.Admitted
		}
		plain = plain && s.Admission == incident.Admitted
		w.Slices = append(w.Slices, n)
		if s.Abuse.Reported {
			w.Told = append(w.Told, heart.Told{Of: heart.ToldAbuse, Slice: s.Name, Life: s.Incarnation.ID, At: later(s.Abuse.At, s.Since)})
		}
		if s.End.Reported {
			w.Told = append(w.Told, heart.Told{Of: heart.ToldEnd, Slice: s.Name, Life: s.Incarnation.ID, At: s.Since})
		}
	}
	w.Lease.Attempt = max(o.Crew.Confirmed, o.Crew.LeaseAttempt)
	if (!plain || o.Crew.LeaseAttempt > 0) && len(o.Slices) > 0 { // a lease of Pitstop's stands there
		w.Lease.Sure = heart.Write{At: time.Unix(1, 0).UTC(), Attempt: w.Lease.Attempt}
		for _, s := range o.Slices {
			life := s.Admitted()
			if !life.Known() {
				life = events.Incarnation{Zone: "nowhere", ID: "none"}
			}
			w.Lease.Sure.Lives = append(w.Lease.Sure.Lives, events.Admission{Slice: s.Name, Incarnation: life, Workers: s.Hosts})
		}
	}
	w.Lease.Doubted = o.LeaseDoubted
	if at := o.Progress.StallReported; !at.IsZero() {
		w.Told = append(w.Told, heart.Told{Of: heart.ToldStall, At: at})
	}
	w.Training = trainingFrom(o)
	for range o.Budgets.Recreates {
		w.Charges = append(w.Charges, heart.Charge{Action: events.ActionDelete, At: spentAt(o)})
	}
	for range o.Budgets.Restarts {
		w.Charges = append(w.Charges, heart.Charge{Action: events.ActionRestart, At: spentAt(o)})
	}
	for _, c := range o.Creators {
		w.Made = append(w.Made, heart.Making{Incident: c.Incident, Opened: c.Opened, Closed: c.Closed})
	}
	for _, x := range o.Effects {
		w.Effects = append(w.Effects, effectFrom(x))
	}
	w.Incident, w.Closed = incidentFrom(o.Incident), incidentFrom(o.Closed)
	return w
}

// spentAt is when budgets were spent of which an old document gives the sums alone.
func spentAt(o incident.Workload) time.Time {
	if !o.Budgets.Since.IsZero() {
		return o.Budgets.Since
	}
	return start
}

func lifeFrom(l incident.Life) heart.Life {
	n := heart.Life{
		Incarnation: l.Incarnation, Zone: l.Zone, SpecZone: l.SpecZone, Facts: l.Facts, Hosts: l.Hosts, HostsTold: l.HostsTold, HostsAsked: l.HostsAsked,
		Condition: l.Condition, State: l.State, Since: l.Since, Used: l.Used, Spoke: l.Spoke, Stop: heart.Stop(l.Stop),
		Heard:  heart.Heard{At: l.Heard.At, Seen: l.Heard.Seen, Runs: l.Heard.Runs},
		Unused: l.NeverUsable, Maker: l.Maker, Ordered: l.Ordered, Released: l.End.Released,
		Notice: heart.Notice{Notice: l.Notice.Notice, LastWord: l.Notice.LastWord, InAPI: l.Notice.InAPI, Told: l.Notice.Told, End: l.Notice.End, Started: l.Notice.Started},
	}
	n.Suspected, n.SuspectedAt = l.Abuse.Suspected, l.Abuse.At
	if l.End.Since.IsZero() && l.Condition == incident.Gone {
		n.Over = l.Since
	}
	if !l.End.Since.IsZero() {
		n.Over = l.End.Since
	}
	if l.Notice.Declined {
		n.Notice.Declined = l.Notice.LastWord
	}
	if l.Notice.End { // which the new heart computes
		n.Notice = heart.Notice{}
	}
	return n
}

func errorFrom(e incident.Error) heart.Exit {
	return heart.Exit{Attempt: e.Attempt, At: e.At, Sign: e.Sign, High: e.High, Exit: e.Exit}
}

func trainingFrom(o incident.Workload) heart.Training {
	c, p := o.Crew, o.Progress
	t := heart.Training{
		Seen: c.Seen, Since: c.Since, Attempt: c.Attempt, Began: c.Started, Exit: errorFrom(c.Error),
		Claim: heart.Claim{Attempt: c.Claim.Attempt, Finished: c.Claim.Finished, At: c.Claim.At},
		Step:  p.Step, StepAt: p.At, StepAttempt: p.Attempt, High: p.High, Stepped: p.Stepped, GapSeconds: p.GapSeconds,
		Reported: heart.Checkpoint{Step: p.CheckpointStep, At: p.CheckpointAt}, Proven: p.Proven,
		Saved:       heart.Checkpoint{Step: p.Verified, At: p.VerifiedAt, URI: p.VerifiedURI, Bytes: p.VerifiedBytes},
		SaveSeconds: o.Pace.Saves, SaveMode: o.Pace.Mode, GapsBetween: o.Pace.Gaps,
	}
	switch {
	case c.Finished && !c.Complete:
		t.Verdict = heart.Verdict{Attempt: max(c.Done, c.Attempt), Finished: true, Certain: c.Certain, At: c.FinishedAt}
	case c.GaveUp > 0:
		t.Verdict = heart.Verdict{Attempt: c.GaveUp, GaveUp: true}
	}
	return t
}

func effectFrom(x incident.Effect) heart.Effect {
	return heart.Effect{
		Want: heart.Want{
			Action: x.Action, Slice: x.Slice, With: x.With, Place: view.Place{Zone: x.Zone, Accelerator: x.Accelerator}, Life: x.Incarnation, By: x.By, Mode: x.Mode,
		},
		Epoch: x.Epoch, Attempt: x.Attempt, Failures: x.Failures, First: x.Sent, Sent: x.Sent, Begun: x.Begun,
		Answered: x.Answered, Retry: x.Retry, Barred: x.Barred, RequestID: x.RequestID, Operation: x.Operation,
		Lease: heart.Write{Attempt: x.LeaseAttempt, Lives: x.Admit}, Lives: x.Lives, Ordered: x.Ordered, Digest: x.Digest,
		Last: heart.Failure{Code: x.LastCode, Text: x.LastFailure},
	}
}

func incidentFrom(o *incident.Incident) *heart.Incident {
	if o == nil {
		return nil
	}
	in := &heart.Incident{
		ID: o.ID, Opened: o.Opened, Closed: o.Closed, Ceiling: o.Switches, Limits: o.Limits, Policy: o.Policy, ChipHourPrice: o.ChipHourPrice,
		Baseline: o.Baseline, BaseAttempt: o.BaseAttempt, Refusals: o.Zones, Calls: o.Calls, CallsLeftOut: o.CallsLeftOut, Planned: o.PlannedCalls,
		Save:     heart.Save{Asked: o.Save.Requested, Acked: o.Save.Acked, Step: o.Save.Step, Refused: o.Save.Failed, Found: heart.Checkpoint{At: o.Save.At, Bytes: o.Save.Bytes}},
		Status:   heart.Status{Label: o.Phase, Since: o.Since, Until: o.Deadline, Reminded: o.Reminded, Asks: o.Asked},
		Revision: o.Revision, LeftOut: o.LeftOut,
	}
	for _, t := range o.Troubles {
		rank := events.RankAudit
		switch {
		case t.Proven:
			rank = events.RankReading
		case t.Claimed:
			rank = events.RankUser
		}
		in.Troubles = append(in.Troubles, heart.Trouble{Cause: t.Cause, Slice: t.Slice, Life: t.Life, At: t.At, Heard: t.At, Rank: rank, Announced: t.Announced, Text: t.Text})
	}
	if o.Outcome != "" {
		in.Ending = &heart.End{Outcome: o.Outcome, By: o.ConfirmedBy, Code: o.Code}
	}
	return in
}

// viewOf shows a new document as an old one.
func viewOf(w heart.Workload, now time.Time) incident.Workload {
	o := incident.New(w.Project, w.Name, w.Provider)
	o.ID, o.Label, o.Directory, o.Seen, o.Epoch, o.Ended = w.ID, w.Label, w.Directory, w.Seen, w.Epoch, w.Ended
	o.Pause, o.Orders, o.Outbox, o.LeaseDoubted = w.Pause, w.Orders, w.Outbox, w.Lease.Doubted
	for _, u := range w.Unbound {
		o.Unbound = append(o.Unbound, incident.Unbound{ID: u.ID, Time: u.Time, Slice: u.Slice, Report: u.Report()})
	}
	for i := range w.Slices {
		o.Slices = append(o.Slices, slotOf(w, &w.Slices[i]))
	}
	for _, c := range w.Made {
		o.Creators = append(o.Creators, incident.Creator{Incident: c.Incident, Opened: c.Opened, Closed: c.Closed})
	}
	for _, c := range w.Charges {
		if c.Action == events.ActionRestart && now.Sub(c.At) < 24*time.Hour {
			o.Crew.Restarted = append(o.Crew.Restarted, c.At)
		}
	}
	o.Budgets = incident.Budgets{Restarts: w.Spent(events.ActionRestart), Recreates: w.Spent(events.ActionDelete), Since: w.Shown(now).BudgetsSince}
	o.WaitTold = w.Shown(now).WaitTold
	showTraining(&o, w)
	for i := range w.Effects {
		x := &w.Effects[i]
		if x.Dropped() {
			continue // nobody wants it
		}
		o.Effects = append(o.Effects, effectOf(*x, w.Incident.ID))
		if x.Lease.Attempt > 0 {
			o.Crew.LeaseAttempt = max(o.Crew.LeaseAttempt, x.Lease.Attempt)
		}
	}
	o.Incident, o.Closed = incidentOf(w, w.Incident, now), incidentOf(w, w.Closed, now)
	return o
}

func slotOf(w heart.Workload, s *heart.Slot) incident.Slot {
	n := incident.Slot{Name: s.Name, Life: lifeOf(s.Life)}
	if s.Order != (heart.Order{}) {
		n.Order = incident.Order{Zone: s.Order.SpecZone, Accelerator: s.Order.Accelerator, Spec: s.Order.Spec, SpecZone: s.Order.SpecZone}
	}
	named := events.Incarnation{}
	for _, a := range w.Lease.Sure.Lives {
		if a.Slice == s.Name {
			named = a.Incarnation
		}
	}
	admitted := false
	admits := func(l *incident.Life) {
		if l.Incarnation.Known() && (named.Known() && named.Same(l.Incarnation) || len(w.Lease.Sure.Lives) == 0 && l.Maker == "" && !admitted) {
			l.Admission, admitted = incident.Admitted, true
		}
	}
	admits(&n.Life)
	for _, m := range w.Lease.Maybe {
		for _, a := range m.Lives {
			if a.Slice == s.Name && a.Incarnation.Same(s.Incarnation) {
				n.Leased = m.Attempt
			}
		}
	}
	for i := range slices.Backward(s.Former) {
		l := lifeOf(s.Former[i])
		admits(&l)
		n.Former = append([]incident.Life{l}, n.Former...)
	}
	if proven := func(t heart.Trouble) bool {
		return t.Slice == s.Name && t.Life == s.Incarnation.ID && t.Rank >= events.RankReading
	}; s.Unused && s.Condition == incident.Gone &&
		s.EndedBy == "" && (w.Incident == nil || !slices.ContainsFunc(w.Incident.Troubles, proven)) && s.Released.IsZero() {
		n.End.Released = s.Since // what its owner ordered came to nothing
	}
	for _, t := range w.Told {
		if t.Slice == s.Name && t.Life == s.Incarnation.ID {
			n.End.Reported = n.End.Reported || t.Of == heart.ToldEnd && !t.At.Before(s.Used)
			n.Abuse.Reported = n.Abuse.Reported || t.Of == heart.ToldAbuse && !t.At.Before(s.SuspectedAt)
		}
	}
	return n
}

func lifeOf(l heart.Life) incident.Life {
	return incident.Life{
		Incarnation: l.Incarnation, Zone: l.Zone, SpecZone: l.SpecZone, Facts: l.Facts, Hosts: l.Hosts, HostsTold: l.HostsTold, HostsAsked: l.HostsAsked,
		Condition: l.Condition, State: l.State, Since: l.Since, Used: l.Used, Spoke: l.Spoke, Stop: incident.Stop(l.Stop),
		Heard: incident.Heard{At: l.Heard.At, Seen: l.Heard.Seen, Runs: l.Heard.Runs},
		Abuse: incident.Abuse{Suspected: l.Suspected, At: l.SuspectedAt}, Maker: l.Maker, Ordered: l.Ordered, NeverUsable: l.Unused, End: incident.End{Released: l.Released},
		Notice: incident.Notice{
			Notice: l.Notice.Notice, LastWord: l.Notice.LastWord, InAPI: l.Notice.InAPI, Told: l.Notice.Told, End: l.Notice.End, Started: l.Notice.Started,
			Declined: !l.Notice.Declined.IsZero(),
		},
	}
}

// showNotices shows what the new heart computes of the announcements.
func showNotices(o *incident.Workload, h heart.Workload, now time.Time) {
	for i, s := range h.Shown(now).Slices {
		if n := s.LastNotice; n != nil {
			kept := &o.Slices[i].Notice
			kept.Notice, kept.End, kept.Due, kept.Declined, kept.Deaf = n.Notice, n.End, n.Due, n.Declined, n.Deaf
		}
	}
}

func errorOf(e heart.Exit) incident.Error {
	return incident.Error{Attempt: e.Attempt, At: e.At, Sign: e.Sign, High: e.High, Exit: e.Exit}
}

func showTraining(o *incident.Workload, w heart.Workload) {
	t := w.Training
	c := &o.Crew
	c.Seen, c.Since, c.Attempt, c.Started, c.Exited, c.Error = t.Seen, t.Since, t.Attempt, t.Began, t.Exit.Attempt, errorOf(t.Exit)
	c.Claim = incident.Claim{Attempt: t.Claim.Attempt, Finished: t.Claim.Finished && t.Claim.Attempt > t.Verdict.Attempt, At: t.Claim.At}
	c.Confirmed, c.LeaseAttempt = w.Lease.Attempt, max(w.Lease.Attempt, w.Lease.Sure.Attempt)
	for _, m := range w.Lease.Maybe {
		c.LeaseAttempt = max(c.LeaseAttempt, m.Attempt)
	}
	c.Complete = len(w.Slices) > 0 && !slices.ContainsFunc(w.Slices, func(s heart.Slot) bool { return s.Condition != incident.Done })
	c.Finished, c.FinishedAt, c.Certain = w.Shown(start).Training.Finished, t.Verdict.At, t.Verdict.Certain
	if t.Claim.Attempt > t.Verdict.Attempt && t.HeardAt.Before(t.Claim.At) {
		c.Claim.ProbeUntil = t.Claim.At.Add(incident.ProbeFor)
	}
	if t.Verdict.Finished {
		c.Done = t.Verdict.Attempt
	} else {
		c.FinishedAt = time.Time{}
	}
	if t.Verdict.GaveUp {
		c.GaveUp = t.Verdict.Attempt
	}
	o.Progress = incident.Progress{
		Step: t.Step, At: t.StepAt, Attempt: t.StepAttempt, High: t.High, Proven: t.Proven, Stepped: t.Stepped, GapSeconds: t.GapSeconds,
		CheckpointStep: t.Reported.Step, CheckpointAt: t.Reported.At, Verified: t.Saved.Step, VerifiedAt: t.Saved.At, VerifiedURI: t.Saved.URI, VerifiedBytes: t.Saved.Bytes,
	}
	for _, told := range w.Told {
		if told.Of == heart.ToldStall {
			o.Progress.StallReported = told.At
		}
	}
	o.Pace = incident.Pace{Saves: t.SaveSeconds, Mode: t.SaveMode, Gaps: t.GapsBetween}
}

func effectOf(x heart.Effect, maker string) incident.Effect {
	return incident.Effect{
		Maker: maker, Action: x.Action, Slice: x.Slice, With: x.With, Zone: x.Zone, Accelerator: x.Accelerator, Incarnation: x.Life, Ordered: x.Ordered,
		Epoch: x.Epoch, Attempt: x.Attempt, Reason: x.Why.String(), LeaseAttempt: x.Lease.Attempt, Admit: x.Lease.Lives, Sent: x.Sent, Begun: x.Begun,
		RequestID: x.RequestID, Answered: x.Answered, Operation: x.Operation, Retry: x.Retry, Barred: x.Barred, Failures: x.Failures,
		LastFailure: x.Last.Text, LastCode: x.Last.Code, By: x.By, Mode: x.Mode, Lives: x.Lives, Digest: x.Digest,
	}
}

// baselineOf is the step that a training has to pass, in a closed incident that of its opening.
func baselineOf(w heart.Workload, in *heart.Incident) int64 {
	if w.Incident == nil {
		return in.Baseline
	}
	return w.Baseline()
}

func incidentOf(w heart.Workload, in *heart.Incident, now time.Time) *incident.Incident {
	if in == nil {
		return nil
	}
	o := &incident.Incident{
		ID: in.ID, Cause: in.Cause(), Opened: in.Opened, Closed: in.Closed, Phase: in.Status.Label, Since: in.Status.Since, Deadline: in.Status.Until,
		Switches: in.Ceiling, Limits: in.Limits, Policy: in.Policy, ChipHourPrice: in.ChipHourPrice, Calls: in.Calls, CallsLeftOut: in.CallsLeftOut,
		Zones: in.Refusals, Baseline: baselineOf(w, in), BaseAttempt: in.BaseAttempt, Asked: in.Status.Asks, Reminded: in.Status.Reminded,
		PlannedCalls: in.Planned, Revision: in.Revision, LeftOut: in.LeftOut, Down: in.Opened,
		Charged: w.ShownIncident(*in, now).Cost.Restarts,
		Save: incident.Save{
			ID: in.SaveID(), Requested: in.Save.Asked, Acked: in.Save.Acked, Step: in.Save.Step, Failed: in.Save.Refused, At: in.Save.Found.At,
			Bytes: in.Save.Found.Bytes, Verified: !in.Save.Found.At.IsZero(),
		},
	}
	if !in.Would.IsZero() {
		o.Would = []string{in.Would.String()}
	}
	o.Retried = slices.ContainsFunc(w.Orders, func(s view.Spoken) bool { return s.Verb == incident.VerbRetry && s.At.Equal(in.Opened) })
	if !slices.ContainsFunc(in.Troubles, func(t heart.Trouble) bool { return !t.Announced }) && !slices.ContainsFunc(w.Slices, func(s heart.Slot) bool { return s.Since.After(in.Opened) }) {
		o.Down = time.Time{} // nothing has happened yet
	}
	o.Begun = slices.ContainsFunc(w.Slices, func(s heart.Slot) bool {
		return s.Notice.Started.After(in.Opened) || s.Notice.Status == events.NoticeOngoing && s.Released.IsZero()
	})
	shown := w.ShownIncident(*in, now)
	o.Save.Result, o.Save.Failed, o.Charged = shown.Save.Result, shown.Save.Failed, shown.Cost.Restarts
	if shown.Error.Attempt > 0 {
		o.Error = errorOf(w.Training.Exit)
	}
	o.Hearing = slices.ContainsFunc(w.Effects, func(x heart.Effect) bool { return x.Action == events.ActionHear && !x.Dropped() })
	if len(in.Refusals) > 0 {
		o.WaitingSince = in.Refusals[0].At
	}
	for i := range w.Slices {
		if s := &w.Slices[i]; s.Order != (heart.Order{}) {
			o.Before = append(o.Before, incident.Before{Slice: s.Name, Accelerator: s.Order.Accelerator, Chips: s.Order.Chips})
		}
		if s := &w.Slices[i]; !s.Ordered.IsZero() && o.WaitingSince.IsZero() {
			o.WaitingSince = s.Ordered
		}
	}
	for i, t := range in.Troubles {
		if !t.Announced && (i == 0 || t.At.Before(o.Down)) {
			o.Down = t.At
		}
		o.Troubles = append(o.Troubles, incident.Trouble{
			Cause: t.Cause, Slice: t.Slice, At: t.At, Text: t.Text, Life: t.Life, Announced: t.Announced, Proven: t.Rank >= events.RankReading, Claimed: t.Rank <= events.RankUser,
		})
	}
	for _, l := range in.Lines {
		o.Timeline = append(o.Timeline, incident.Line{At: l.At, Kind: l.Kind, Text: l.What.String(), Reason: l.Why.String(), Source: l.Source, Code: l.Code, Phase: l.Label})
	}
	for _, c := range in.Calls {
		o.Created = o.Created || c.Action == events.ActionCreate
	}
	if n := len(w.Holds); n > 0 && in.Closed.IsZero() && now.Before(w.Holds[n-1].Until) {
		o.Held, o.HeldCode = w.Holds[n-1].Why, w.Holds[n-1].Code
	}
	if e := in.Ending; e != nil {
		o.Reason, o.Code, o.Advice = e.Reason.String(), e.Code, e.Advice.String()
		if in.Closed.IsZero() {
			o.Clearing = e.Outcome
		} else {
			o.Outcome, o.ConfirmedBy, o.Phase = e.Outcome, e.By, incident.Closed
		}
	}
	return o
}

// differs is a difference between the editions that is meant. Kinds says why, by kind.
type differs struct{ path, want, got, kind string }

// kinds are the differences that the third edition means to make.
var kinds = map[string]string{
	"no save":        "a look at the directory that finds no checkpoint takes back what an earlier one found",
	"waited":         "the time in which it looked at usable slices counts as time in which it waited for progress",
	"on its machine": "before maintenance the crew's verdict is read on its machine alone",
	"complete":       "a save is late by when it was complete, and not by when it was found",
	"let in":         "what its owner starts is let in without another word",
	"stale":          "what a failed save lacks stands in its words",
	"closed":         "what a closed incident has made, and left to its owner, is judged by its own end alone",
	"reads on":       "a policy that cannot be read holds no reading back",
	"sick":           "the crew on a machine that cannot be used may still say what it did",
	"by time":        "a time ends the tries, and not their number",

	"second life": "it deletes a second life that its own call has made, before training is let in or as soon as it shows; people are left only what training may have begun in",
	"form":        "the test sets the old document to what no reading leads to",
	"begun call":  "a deletion that was begun and never answered is remembered until a reading shows what became of it",
	"spec":        "what its own call has ordered in the owner's shape is as good as the order that it was made from",
	"its crew":    "in the zone of the life before, the crew of what somebody else has made puts itself into the lease",
	"words":       "it says the same in other words",
	"retry":       "a person who has it tried again says more than an older deletion of the life before",

	"at once":    "it acts on any news, and not only at the next tick",
	"heals":      "what is shown alive before anybody has begun to delete it has its time to heal",
	"label":      "a step that waits for a policy that can be read is named by what it would do",
	"read":       "what was read last counts until a reading shows something else",
	"own policy": "a function that finds a switch closed ends nothing: the plan decides again, by the policy that it reads itself",
	"steps":      "once a crew speaks its steps are the proof, and no checkpoint is looked for any more",
	"none":       "where one slice of several is refused for good, no call for another one is made any more",
	"newer":      "a proven step refills what was charged before it, and nothing that was charged later",
	"cost":       "what an incident has spent stays part of its cost, though a step has refilled the budget",
	"tries":      "each try that fails tells its reason, and no line sums them up",
	"needed":     "it reads the verdict once a decision needs it, and not before the provider has had its time",
	"cleaned":    "what came late of its own calls is cleaned up, and not left to a person",
	"window":     "once the window is over it asks about no save before it any more, but about what the training needs then",
	"text":       "the cause of the incident says it, and no other line says it again",
	"begun":      "it charges a call when it is begun, and not when it is decided on",
	"fewer":      "it comes to the same end with fewer calls or readings",
	"spoke":      "it only watches a training whose crew has spoken since its last step: what it saves is not looked for again",
	"one":        "it prepares for maintenance in the incident that watches a hang, and opens no other one",
	"tick":       "a loss that a step of the same time hides opens with the next tick",
	"later":      "what happened after an incident's end is not of that incident, by however little",
	"late":       "word of what is longer ago than evidence comes late opens nothing: a reading shows what is lost still",
}

var accepted = []differs{
	{"pending, later, tick, approved, intend save 0, saved, found verify 0, forbidden maintain 0", "approving", "maintaining", "own policy"},
	{"stopped for, read gone, preempted", "grace", "creating", "at once"},
	{"host error, read stopped, a while, unsaid", "healing", "starting", "at once"},
	{"host error, read unhealthy, read ready, later, tick", "resuming", "restarting", "waited"},
	{"a third is gone while one is lost and another is started > b read lost > a read stopped > a while > a unsaid > tick > do > c read gone > a while > c unsaid", "starting", "creating: create c", "at once"},
	{"a third is gone while one is lost and another is started > b read lost > a read stopped > a while > a unsaid > tick > do > c read gone > a while > c unsaid > a read ready", "creating: create c", "creating", "at once"},
	{"one is preempted, and the other goes with it, and nothing is saved > a read lost > b read deleting", "looking", "deleting: delete a with b", "at once"},
	{"one is preempted, and the other goes with it, and nothing is saved > a read lost > b read deleting > later", "looking", "deleting", "at once"},
	{"one is preempted, and the other goes with it, and nothing is saved > a read lost > b read deleting > later > tick", "deleting: delete a with b", "escalated", "at once"},
}

// either is what each edition comes to, where the third means to differ from the second.
func either[T any](second, theThird T, kind string) T {
	if !*third {
		return second
	}
	if kinds[kind] == "" {
		panic("no difference is called " + kind)
	}
	return theThird
}

// isAccepted reports whether the third edition means to differ after a path.
func isAccepted(path, want, got string) bool {
	return *third && slices.ContainsFunc(accepted, func(d differs) bool { return d.path == path && d.want == want && d.got == got })
}

// later is the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
