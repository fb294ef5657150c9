package gketest

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"time"
)

const (
	// tracking keeps a Pod until its Job has counted it, and foreground an owner until all that it owns is gone.
	tracking   = "batch.kubernetes.io/job-tracking"
	foreground = "foregroundDeletion"
)

var nameForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// touch notes that an object has changed: it gets a version, and its owner will look.
func (s *Server) touch(o object) {
	s.version++
	put(o, strconv.FormatUint(s.version, 10), "metadata", "resourceVersion")
	s.changed[uidOf(o)] = true
	if c := controller(o); c != "" {
		s.changed[c] = true
	}
}

// resourceOf is the resource of an object that is stored.
func (s *Server) resourceOf(o object) resource { return s.kinds[uidOf(o)] }

// own notes whose an object is, or forgets it.
func (s *Server) own(o object, is bool) {
	for _, ref := range list(o, "metadata", "ownerReferences") {
		owner := text(ref, "uid")
		if !is {
			delete(s.owns[owner], uidOf(o))
			continue
		}
		if s.owns[owner] == nil {
			s.owns[owner] = map[string]bool{}
		}
		s.owns[owner][uidOf(o)] = true
	}
}

// add stores a new object, with what the server gives it.
func (s *Server) add(r resource, o object) object {
	put(o, s.identifier("uid"), "metadata", "uid")
	put(o, s.now(), "metadata", "creationTimestamp")
	put(o, 1, "metadata", "generation")
	s.stored[r][keyOf(o)] = o
	s.byUID[uidOf(o)], s.kinds[uidOf(o)] = o, r
	s.own(o, true)
	s.touch(o)
	return o
}

// create makes an object. A dry run goes as far as the refusals do, and stores nothing.
func (s *Server) create(to target, sent object, dry bool) (object, *refusal) {
	r := to.resource
	o := clone(sent)
	if o == nil {
		return nil, badRequest("the object provided is unrecognized: the body is empty")
	}
	if k := text(o, "kind"); k != "" && k != r.kind || text(o, "apiVersion") != "" && text(o, "apiVersion") != r.apiVersion() {
		return nil, badRequest("%s in version %q cannot be handled as a %s", k, text(o, "apiVersion"), r.kind)
	}
	if no := s.place(to, o); no != nil {
		return nil, no
	}
	if prefix := text(o, "metadata", "generateName"); nameOf(o) == "" && prefix != "" {
		put(o, s.generate(r, to.namespace, prefix), "metadata", "name")
	}
	if no := wrongMetadata(r, o); no != nil {
		return nil, no
	}
	for _, own := range []string{"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields", "selfLink"} {
		drop(o, "metadata", own)
	}
	if r != nodes { // a kubelet creates its node together with its status
		delete(o, "status")
	}
	if no := s.admit(r, o); no != nil {
		return nil, no
	}
	if no := s.overQuota(r, to.namespace, nameOf(o)); no != nil {
		return nil, no
	}
	if s.stored[r][keyOf(o)] != nil {
		return nil, r.exists(nameOf(o))
	}
	if dry {
		return o, nil
	}
	s.add(r, o)
	if r == jobs {
		s.selects(o)
	}
	return o, nil
}

// place puts a new object into its namespace, or says why it cannot be there.
func (s *Server) place(to target, o object) *refusal {
	ns := text(o, "metadata", "namespace")
	switch {
	case ns != "" && ns != to.namespace:
		return badRequest("the namespace of the provided object does not match the namespace sent on the request")
	case !to.resource.namespaced:
		return nil
	case to.namespace == "":
		return badRequest("an empty namespace may not be set during creation")
	case s.stored[namespaces]["/"+to.namespace] == nil:
		return namespaces.notFound(to.namespace)
	}
	put(o, to.namespace, "metadata", "namespace")
	return nil
}

// wrongMetadata says why an object cannot be created under its name.
func wrongMetadata(r resource, o object) *refusal {
	switch name := nameOf(o); {
	case name == "":
		return r.invalid("", "metadata.name", "Required value: name or generateName is required")
	case !nameForm.MatchString(name):
		return r.invalid(name, "metadata.name", fmt.Sprintf("Invalid value: %q: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters", name))
	case text(o, "metadata", "resourceVersion") != "":
		return badRequest("resourceVersion should not be set on objects to be created")
	}
	return nil
}

// admit completes a new object, or says why it cannot be.
func (s *Server) admit(r resource, o object) *refusal {
	switch r {
	case jobs:
		return admitJob(o)
	case jobSets:
		return admitJobSet(o)
	case pods:
		if len(list(o, "spec", "containers")) == 0 {
			return r.invalid(nameOf(o), "spec.containers", "Required value")
		}
		if text(o, "spec", "restartPolicy") == "" {
			put(o, "Always", "spec", "restartPolicy")
		}
		if field(o, "spec", "terminationGracePeriodSeconds") == nil {
			put(o, 30, "spec", "terminationGracePeriodSeconds")
		}
		put(o, "Pending", "status", "phase")
	case namespaces, nodes, services, templates, quotas, tpuSlices, requests, workloads:
	}
	return nil
}

// overQuota refuses a new object where a quota of its namespace lets there be no more. A quota counts by its status, which a controller of
// a real cluster writes, and here the caller. Objects that a controller makes are not counted.
func (s *Server) overQuota(r resource, namespace, name string) *refusal {
	count := "count/" + r.qualified()
	for _, key := range slices.Sorted(maps.Keys(s.stored[quotas])) {
		q := s.stored[quotas][key]
		most, err := strconv.Atoi(text(q, "status", "hard", count))
		if err != nil || text(q, "metadata", "namespace") != namespace {
			continue
		}
		used := 0
		for _, o := range s.stored[r] {
			if text(o, "metadata", "namespace") == namespace {
				used++
			}
		}
		if used >= most {
			return &refusal{code: http.StatusForbidden, reason: "Forbidden", details: r.about(name), message: fmt.Sprintf(
				"%s %q is forbidden: exceeded quota: %s, requested: %s=1, used: %s=%d, limited: %s=%d", r.qualified(), name, nameOf(q), count, count, used, count, most)}
		}
	}
	return nil
}

// change replaces an object by another version of it.
func (s *Server) change(to target, old, o object) (object, *refusal) {
	r := to.resource
	if v := text(o, "metadata", "resourceVersion"); v != "" && v != text(old, "metadata", "resourceVersion") {
		return nil, r.conflict(to.name, stale)
	}
	if u := uidOf(o); u != "" && u != uidOf(old) {
		return nil, r.conflict(to.name, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", u, uidOf(old)))
	}
	if nameOf(o) != to.name {
		return nil, badRequest("the name of the object (%s) does not match the name on the URL (%s)", nameOf(o), to.name)
	}
	n := clone(old)
	if to.sub == "status" {
		n["status"] = o["status"]
	} else {
		for k, v := range o {
			if k != "metadata" && k != "status" {
				n[k] = v
			}
		}
		for _, k := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
			if v := field(o, "metadata", k); v != nil {
				put(n, v, "metadata", k)
			} else {
				drop(n, "metadata", k)
			}
		}
	}
	if no := s.mayChange(r, old, n); no != nil {
		return nil, no
	}
	if same(old, n) {
		return old, nil
	}
	if !same(old["spec"], n["spec"]) {
		put(n, number(old, 0, "metadata", "generation")+1, "metadata", "generation")
	}
	s.own(old, false)
	clear(old)
	maps.Copy(old, n) // others hold the object itself
	s.own(old, true)
	s.touch(old)
	s.reap(r, old)
	return old, nil
}

func same(a, b any) bool {
	switch x := a.(type) {
	case object:
		y, ok := b.(object)
		return ok && maps.EqualFunc(x, y, same)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, same)
	}
	return reflect.DeepEqual(decoded(a), decoded(b))
}

// decoded makes numbers of one type, as JSON has them.
func decoded(v any) any {
	if n, ok := v.(int); ok {
		return float64(n)
	}
	return v
}

func (s *Server) update(to target, sent object) (object, *refusal) {
	old, no := s.find(to)
	if no != nil {
		return nil, no
	}
	if to.resource.custom && text(sent, "metadata", "resourceVersion") == "" {
		return nil, to.resource.invalid(to.name, "metadata.resourceVersion", "Invalid value: 0x0: must be specified for an update")
	}
	return s.change(to, old, clone(sent))
}

func (s *Server) patch(to target, sent object) (object, *refusal) {
	old, no := s.find(to)
	if no != nil {
		return nil, no
	}
	if sent == nil {
		return nil, badRequest("the patch is empty")
	}
	if u := uidOf(sent); u != "" && u != uidOf(old) {
		return nil, to.resource.invalid(to.name, "metadata.uid", fmt.Sprintf("Invalid value: %q: field is immutable", u))
	}
	return s.change(to, old, merge(clone(old), clone(sent)))
}

// mayChange says which change is not allowed.
func (s *Server) mayChange(r resource, old, n object) *refusal {
	immutable := func(path ...string) *refusal {
		if same(field(old, path...), field(n, path...)) {
			return nil
		}
		where := path[0]
		for _, p := range path[1:] {
			where += "." + p
		}
		return r.invalid(nameOf(old), where, "Invalid value: field is immutable")
	}
	switch r {
	case jobs:
		if no := immutable("spec", "selector"); no != nil {
			return no
		}
		if no := immutable("spec", "completionMode"); no != nil {
			return no
		}
		if truth(old, "spec", "suspend") && field(old, "status", "startTime") == nil {
			return nil
		}
		return immutable("spec", "template")
	case jobSets:
		if truth(old, "spec", "suspend") {
			return nil
		}
		return immutable("spec", "replicatedJobs")
	case pods:
		if no := immutable("spec"); no != nil {
			no.message = fmt.Sprintf("Pod %q is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`", nameOf(old))
			return no
		}
	case namespaces, nodes, services, templates, quotas, tpuSlices, requests, workloads:
	}
	return nil
}

// delete begins or does a deletion, under the conditions that the caller sets.
func (s *Server) delete(to target, sent object) (object, *refusal) {
	r := to.resource
	o, no := s.find(to)
	if no != nil {
		return nil, no
	}
	if u := text(sent, "preconditions", "uid"); u != "" && u != uidOf(o) {
		return nil, r.conflict(to.name, fmt.Sprintf(
			"the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", u, uidOf(o)))
	}
	if v := text(sent, "preconditions", "resourceVersion"); v != "" && v != text(o, "metadata", "resourceVersion") {
		return nil, r.conflict(to.name, fmt.Sprintf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). "+
			"The object might have been modified", v, text(o, "metadata", "resourceVersion")))
	}
	how := text(sent, "propagationPolicy")
	switch how {
	case "", "Background", "Foreground", "Orphan":
	default:
		return nil, r.invalid(to.name, "propagationPolicy", fmt.Sprintf("Unsupported value: %q", how))
	}
	uid := uidOf(o)
	s.remove(r, o, how, number(sent, -1, "gracePeriodSeconds"))
	if s.byUID[uid] != nil {
		return shown(r, o), nil
	}
	return object{
		"kind": "Status", "apiVersion": "v1", "metadata": object{}, "status": "Success",
		"details": object{"name": to.name, "group": r.group, "kind": r.plural, "uid": uid},
	}, nil
}

// remove deletes an object as the policy says. A grace below zero is the object's own.
func (s *Server) remove(r resource, o object, how string, grace int) {
	if r == pods {
		s.endPod(o, grace)
		return
	}
	if !isDeleting(o) {
		put(o, s.now(), "metadata", "deletionTimestamp")
		put(o, 0, "metadata", "deletionGracePeriodSeconds")
	}
	switch how {
	case "Foreground":
		if !slices.Contains(finalizers(o), foreground) && len(s.dependents(uidOf(o))) > 0 {
			setFinalizers(o, append(finalizers(o), foreground))
		}
	case "Orphan":
		for _, d := range s.dependents(uidOf(o)) {
			s.own(d, false)
			drop(d, "metadata", "ownerReferences")
			s.touch(d)
		}
	}
	s.touch(o)
	s.reap(r, o)
	if s.byUID[uidOf(o)] != nil && slices.Contains(finalizers(o), foreground) {
		for _, d := range s.dependents(uidOf(o)) {
			s.remove(s.resourceOf(d), d, "Foreground", -1)
		}
	}
}

// dependents are the objects that this one owns, in a fixed order.
func (s *Server) dependents(uid string) (all []object) {
	for child := range s.owns[uid] {
		all = append(all, s.byUID[child])
	}
	slices.SortFunc(all, compare)
	return all
}

// reap takes an object away that is deleted and that nobody holds. What it owned follows.
func (s *Server) reap(r resource, o object) {
	uid := uidOf(o)
	if !isDeleting(o) || len(finalizers(o)) > 0 || r == pods && !s.process(uid).ended || s.byUID[uid] == nil {
		return
	}
	delete(s.stored[r], keyOf(o))
	s.own(o, false)
	delete(s.byUID, uid)
	delete(s.kinds, uid)
	delete(s.run, uid)
	delete(s.texts, uid)
	delete(s.retry, uid)
	s.version++
	if c := controller(o); c != "" {
		s.changed[c] = true
	}
	orphans := s.dependents(uid)
	delete(s.owns, uid)
	for _, d := range orphans {
		unhold(d, tracking) // nobody counts it any more
		s.remove(s.resourceOf(d), d, "Background", -1)
	}
	for _, ref := range list(o, "metadata", "ownerReferences") {
		if owner := s.byUID[text(ref, "uid")]; owner != nil && slices.Contains(finalizers(owner), foreground) && len(s.dependents(uidOf(owner))) == 0 {
			unhold(owner, foreground)
			s.touch(owner)
			s.reap(s.resourceOf(owner), owner)
		}
	}
	switch r {
	case nodes:
		s.nodeGone(nameOf(o))
	case namespaces:
		for _, of := range resources {
			for _, key := range slices.Sorted(maps.Keys(s.stored[of])) {
				if x := s.stored[of][key]; x != nil && of.namespaced && text(x, "metadata", "namespace") == nameOf(o) {
					setFinalizers(x, nil)
					s.remove(of, x, "Background", 0)
				}
			}
		}
	default:
	}
}

// settle lets the controllers look at what has changed until nothing changes any more.
func (s *Server) settle() {
	if s.busy {
		return
	}
	s.busy = true
	defer func() { s.busy = false }()
	s.due()
	for len(s.changed) > 0 {
		uids := slices.SortedFunc(maps.Keys(s.changed), func(a, b string) int {
			return compare(s.byUID[a], s.byUID[b])
		})
		clear(s.changed)
		for _, uid := range uids {
			o := s.byUID[uid]
			if o == nil {
				continue
			}
			switch s.resourceOf(o) {
			case pods:
				s.syncPod(o)
			case jobs:
				s.syncJob(o)
			case jobSets:
				s.syncJobSet(o)
			default:
			}
		}
		s.schedule()
	}
}

// compare orders objects by namespace, name and life, so that controllers look in a fixed order.
func compare(a, b object) int {
	x, y := keyOf(a)+uidOf(a), keyOf(b)+uidOf(b)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// due marks what time alone changes.
func (s *Server) due() {
	now := s.clock.Now()
	for _, uid := range slices.Sorted(maps.Keys(s.run)) {
		if p := s.run[uid]; !p.next.IsZero() && !p.next.After(now) {
			s.changed[uid] = true
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(s.retry)) {
		if !s.retry[uid].After(now) {
			s.changed[uid] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.silent)) {
		s.nodeSilent(name, s.silent[name], now)
	}
	for _, name := range slices.Sorted(maps.Keys(s.lost)) {
		if !s.lost[name].Add(s.timing.Collect).After(now) {
			s.collect(name)
		}
	}
}

// retryAt has a Job or JobSet look again then.
func (s *Server) retryAt(uid string, t time.Time) {
	if s.retry[uid] != t {
		s.retry[uid] = t
		s.wakeAt(t)
	}
}
