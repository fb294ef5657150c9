package gketest

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// process is what a machine knows of a Pod on it.
type process struct {
	// ready is when the Pod becomes ready, stops when it ends after it was asked to, and next the earlier of what is to come.
	ready, stops, next time.Time
	// ended says that nothing runs any more, as far as the API knows: the machine said so, or somebody forced the deletion.
	ended bool
}

func (s *Server) process(uid string) *process {
	p := s.run[uid]
	if p == nil {
		p = &process{}
		s.run[uid] = p
	}
	return p
}

func phase(pod object) string { return text(pod, "status", "phase") }

func terminal(pod object) bool { return phase(pod) == "Succeeded" || phase(pod) == "Failed" }

// reachable reports whether a node is there and says so.
func (s *Server) reachable(name string) bool {
	_, silent := s.silent[name]
	return s.stored[nodes]["/"+name] != nil && !silent
}

// syncPod does what the machine of a Pod does: it starts it, and ends it when it is deleted.
func (s *Server) syncPod(pod object) {
	uid, now := uidOf(pod), s.clock.Now()
	p, node := s.process(uid), text(pod, "spec", "nodeName")
	p.next = time.Time{}
	switch {
	case terminal(pod):
		if isDeleting(pod) && (node == "" || s.reachable(node)) { // its machine has to say so
			p.ended = true
		}
	case node == "" || !s.reachable(node):
	case isDeleting(pod):
		if p.stops.IsZero() {
			p.stops = now.Add(min(s.timing.Stop, time.Duration(number(pod, 30, "metadata", "deletionGracePeriodSeconds"))*time.Second))
		}
		if now.Before(p.stops) {
			p.next = p.stops
			s.wakeAt(p.next)
			break
		}
		s.exit(pod, 143)
		p.ended = true
	case phase(pod) == "Pending":
		if p.ready.IsZero() {
			p.ready = now.Add(s.timing.Start)
		}
		if now.Before(p.ready) {
			p.next = p.ready
			s.wakeAt(p.next)
			break
		}
		put(pod, "Running", "status", "phase")
		put(pod, s.now(), "status", "startTime")
		var all []any
		for _, c := range list(pod, "spec", "containers") {
			all = append(all, object{"name": text(c, "name"), "ready": true, "restartCount": 0, "state": object{"running": object{"startedAt": s.now()}}})
		}
		put(pod, all, "status", "containerStatuses")
		hold(pod, s.now(), "Ready", "True", "", "")
		s.touch(pod)
	}
	s.reap(pods, pod)
}

// exit ends the containers of a Pod with a code.
func (s *Server) exit(pod object, code int) {
	if terminal(pod) {
		return
	}
	put(pod, map[bool]string{true: "Succeeded", false: "Failed"}[code == 0], "status", "phase")
	var all []any
	for _, c := range list(pod, "spec", "containers") {
		all = append(all, object{
			"name": text(c, "name"), "ready": false, "restartCount": 0,
			"state": object{"terminated": object{"exitCode": code, "finishedAt": s.now(), "reason": map[bool]string{true: "Completed", false: "Error"}[code == 0]}},
		})
	}
	put(pod, all, "status", "containerStatuses")
	hold(pod, s.now(), "Ready", "False", "PodFailed", "")
	s.touch(pod)
}

// endPod begins the deletion of a Pod, or hurries one that has begun.
func (s *Server) endPod(pod object, grace int) {
	if grace < 0 {
		grace = number(pod, 30, "spec", "terminationGracePeriodSeconds")
	}
	if text(pod, "spec", "nodeName") == "" || terminal(pod) {
		grace = 0
	}
	if !isDeleting(pod) || grace < number(pod, 0, "metadata", "deletionGracePeriodSeconds") {
		put(pod, s.clock.Now().Add(time.Duration(grace)*time.Second).UTC().Format(time.RFC3339), "metadata", "deletionTimestamp")
		put(pod, grace, "metadata", "deletionGracePeriodSeconds")
		s.touch(pod)
	}
	if grace == 0 {
		s.process(uidOf(pod)).ended = true
	}
	s.reap(pods, pod)
}

// chips is what a Pod asks for, or what a node has.
func chips(o any, path ...string) int {
	if t := text(o, path...); t != "" {
		n, _ := strconv.Atoi(t) //nolint:errcheck // what is no number is none
		return n
	}
	return number(o, 0, path...)
}

func asks(pod object) (n int) {
	for _, c := range list(pod, "spec", "containers") {
		n += max(chips(c, "resources", "requests", "google.com/tpu"), chips(c, "resources", "limits", "google.com/tpu"))
	}
	return n
}

// schedule gives Pods machines that have what they ask for, in the order of their names.
func (s *Server) schedule() {
	var waiting []object
	used := map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(s.stored[pods])) {
		switch pod := s.stored[pods][key]; {
		case terminal(pod):
		case text(pod, "spec", "nodeName") != "":
			used[text(pod, "spec", "nodeName")] += asks(pod)
		case !isDeleting(pod) && len(list(pod, "spec", "schedulingGates")) == 0:
			waiting = append(waiting, pod)
		}
	}
	if len(waiting) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(s.stored[nodes]))
	for _, pod := range waiting {
		i := slices.IndexFunc(names, func(key string) bool {
			node := s.stored[nodes][key]
			return takes(node, pod) && used[nameOf(node)]+asks(pod) <= chips(node, "status", "allocatable", "google.com/tpu")
		})
		if i < 0 {
			if hold(pod, s.now(), "PodScheduled", "False", "Unschedulable", "no node has what the Pod asks for") {
				s.touch(pod)
			}
			continue
		}
		node := nameOf(s.stored[nodes][names[i]])
		used[node] += asks(pod)
		put(pod, node, "spec", "nodeName")
		hold(pod, s.now(), "PodScheduled", "True", "", "")
		s.touch(pod)
	}
}

// takes reports whether a node may have a Pod, apart from the room on it.
func takes(node, pod object) bool {
	if !holds(node, "Ready") || truth(node, "spec", "unschedulable") || isDeleting(node) {
		return false
	}
	wanted, _ := field(pod, "spec", "nodeSelector").(object)
	for k, v := range wanted {
		if label(node, k) != v {
			return false
		}
	}
	for _, t := range list(node, "spec", "taints") {
		if text(t, "effect") == "PreferNoSchedule" || text(t, "key") == "google.com/tpu" && asks(pod) > 0 { // GKE's Pods on TPUs tolerate that
			continue
		}
		if !slices.ContainsFunc(list(pod, "spec", "tolerations"), func(o any) bool {
			return (text(o, "key") == "" || text(o, "key") == text(t, "key")) && (text(o, "effect") == "" || text(o, "effect") == text(t, "effect")) &&
				(text(o, "operator") == "Exists" || text(o, "value") == text(t, "value"))
		}) {
			return false
		}
	}
	return true
}

// on are the Pods on a node.
func (s *Server) on(node string) (all []object) {
	for _, key := range slices.Sorted(maps.Keys(s.stored[pods])) {
		if pod := s.stored[pods][key]; text(pod, "spec", "nodeName") == node {
			all = append(all, pod)
		}
	}
	return all
}

// disrupt notes that a Pod ends because of its machine, and no fault of its own.
func (s *Server) disrupt(pod object, reason, message string) {
	if !terminal(pod) && hold(pod, s.now(), "DisruptionTarget", "True", reason, message) {
		s.touch(pod)
	}
}

// nodeGone begins to wait until the Pods of a node that was deleted are collected.
func (s *Server) nodeGone(name string) {
	delete(s.silent, name)
	if len(s.on(name)) > 0 {
		s.lost[name] = s.clock.Now()
		s.wakeAt(s.lost[name].Add(s.timing.Collect))
	}
}

// collect ends the Pods of a node that is gone: nothing runs there any more.
func (s *Server) collect(name string) {
	delete(s.lost, name)
	if s.stored[nodes]["/"+name] != nil {
		return
	}
	for _, pod := range s.on(name) {
		s.disrupt(pod, "DeletionByPodGC", "PodGC: node no longer exists")
		if !terminal(pod) {
			put(pod, "Failed", "status", "phase")
			s.touch(pod)
		}
		s.endPod(pod, 0)
	}
}

// Silence stops the heartbeat of a node: its Pods may go on, and nobody can say.
func (s *Server) Silence(node string) {
	s.mu.Lock()
	defer s.release()
	if s.stored[nodes]["/"+node] == nil {
		return
	}
	since := s.clock.Now()
	s.silent[node] = since
	s.wakeAt(since.Add(s.timing.Missed))
	s.wakeAt(since.Add(s.timing.Missed + s.timing.Evict))
}

// Hear lets a silent node speak again.
func (s *Server) Hear(name string) {
	s.mu.Lock()
	defer s.release()
	node := s.stored[nodes]["/"+name]
	if _, silent := s.silent[name]; !silent || node == nil {
		return
	}
	delete(s.silent, name)
	hold(node, s.now(), "Ready", "True", "KubeletReady", "")
	taints := slices.DeleteFunc(list(node, "spec", "taints"), func(t any) bool { return text(t, "key") == unreachable })
	put(node, taints, "spec", "taints")
	s.touch(node)
	for _, pod := range s.on(name) {
		if phase(pod) == "Running" && hold(pod, s.now(), "Ready", "True", "", "") {
			s.touch(pod)
		}
		s.changed[uidOf(pod)] = true
	}
}

const unreachable = "node.kubernetes.io/unreachable"

// nodeSilent does what follows from a node's silence.
func (s *Server) nodeSilent(name string, since, now time.Time) {
	node := s.stored[nodes]["/"+name]
	if now.Before(since.Add(s.timing.Missed)) {
		return
	}
	if hold(node, s.now(), "Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.") {
		put(node, append(list(node, "spec", "taints"), object{"key": unreachable, "effect": "NoExecute"}), "spec", "taints")
		s.touch(node)
		for _, pod := range s.on(name) {
			if hold(pod, s.now(), "Ready", "False", "NodeNotReady", "") {
				s.touch(pod)
			}
		}
	}
	if now.Before(since.Add(s.timing.Missed + s.timing.Evict)) {
		return
	}
	for _, pod := range s.on(name) {
		if !isDeleting(pod) {
			s.disrupt(pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
			s.endPod(pod, -1)
		}
	}
}

// Exit ends the containers of a Pod with a code.
func (s *Server) Exit(namespace, pod string, code int) {
	s.mu.Lock()
	defer s.release()
	if o := s.stored[pods][namespace+"/"+pod]; o != nil {
		s.exit(o, code)
	}
}
