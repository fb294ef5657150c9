package main

import "slices"

// mutants are the rules of the design, each broken in more than one way.
var mutants = slices.Concat(common, rare)

// common are those that a night under heavy faults catches.
var common = []mutant{
	{"1 fence", "a request of any epoch passes, and its body is believed", []edit{
		{"shared/ledger/resolve.go", "	e, ok := w.Request(t).(E)\n", "	var e E\n	ok := json.Unmarshal(r.Body, &e) == nil\n"},
		{"shared/incident/task.go", "	case w.Epoch != p.Epoch:\n", "	case w.Epoch < p.Epoch:\n"},
		{"shared/incident/task.go", "t.Slice != p.Slice || t.Epoch != p.Epoch || w.Incident.unwanted(*t):\n", "t.Slice != p.Slice || w.Incident.unwanted(*t):\n"},
		{"shared/incident/task.go", "	if t == nil || t.Epoch != r.Epoch || t.Attempt", "	if t == nil || t.Attempt"},
	}},
	{"1 fence", "nothing is read before a deletion", []edit{
		{"functions/recreate/handler.go", "	if s, err = h.Fleet.Read(ctx, ref); err != nil {\n", "	if s = (tpu.Slice{Ref: ref, Condition: incident.Lost, Incarnation: r.Incarnation}); err != nil {\n"},
		{"functions/recreate/handler.go", "	if _, err = h.Fleet.Feed(ctx, w, s); err != nil {\n		return w, s, err\n	}\n", ""},
	}},
	{"2 owner", "what an owner deletes is not released", []edit{
		{"shared/incident/look.go", "		if m.releaseDeleted(s, e.Method == \"DeleteQueuedResource\") {\n", "		if false {\n"},
	}},
	{"8 progress", "a claim is taken over on a reading from before its end", []edit{
		{"shared/ledger/begin.go", "	if t.UnderWay(read) {\n", "	if false {\n"},
	}},
	{"2 owner", "a slice that is gone is lost at once, unasked", []edit{
		{"functions/patrol/handler.go", "	if err != nil || len(asked) == 0 {\n", "	if err != nil || len(asked) >= 0 {\n"},
		{"shared/incident/phase.go", "	Grace  = 35 * time.Minute\n", "	Grace  = time.Minute\n"},
	}},
	{"3 admitted", "a slice that healed is deleted all the same", []edit{
		{"shared/incident/replace.go", "	if m.mayGo(s) || s", "	if t := m.w.Incident.task(events.ActionDelete, s.Name); m.mayGo(s) || !t.Begun.IsZero() || s"},
	}},
	{"3 admitted", "the next one is created before the old one is gone", []edit{
		{"shared/incident/look.go", "	case Unread, Creating, Deleting, Gone:\n", "	case Deleting:\n		m.gone(s)\n	case Unread, Creating, Gone:\n"},
	}},
	{"4 one", "evidence older than the progress opens", []edit{
		{"shared/incident/maintenance.go", "	return m.from.Time.After(m.w.Progress.At)\n", "	return true\n"},
	}},
	{"4 one", "a life whose end was told opens again", []edit{
		{"shared/incident/workload.go", "	return s.theirs(w) || s.Told.Same(s.Incarnation) || s", "	return s.theirs(w) || s"},
	}},
	{"4 one", "the end of an attempt is told as often as its line comes", []edit{
		{"shared/incident/training.go", "r.Signal == \"\" || r.Attempt <= m.w.Crew.Exited {\n", "r.Signal == \"\" {\n"},
		{"shared/incident/maintenance.go", "	return m.from.Time.After(m.w.Progress.At)\n", "	return true\n"},
	}},
	{"5 budgets", "restarts have no bound", []edit{
		{"shared/incident/training.go", "	case m.w.Budgets.Restarts >= MaxRestarts:\n", "	case m.w.Budgets.Restarts >= 1000:\n"},
	}},
	{"5 budgets", "progress takes from the budgets", []edit{
		{"shared/incident/verdict.go", "	*b = Budgets{}\n", "	*b = Budgets{Restarts: -1, Recreates: -1}\n"},
	}},
	{"6 progress", "any step confirms", []edit{
		{"shared/incident/training.go", "in == nil || step <= in.Baseline || !at", "in == nil || !at"},
	}},
	{"6 progress", "READY is taken for training", []edit{
		{"shared/incident/maintenance.go", "	m.enter(Resuming, m.now.Add(ResumeFor))\n	m.decided(\"wait for progress", "	if m.w.Incident != nil {\n		m.finish(Resumed, ByHealth, \"\", why, \"\")\n		return\n	}\n	m.enter(Resuming, m.now.Add(ResumeFor))\n	m.decided(\"wait for progress"},
	}},
	{"7 rank", "a log entry is believed without a look", []edit{
		{"functions/recreate/handler.go", "	if s, err = h.Fleet.Read(ctx, ref); err != nil {\n", "	if s = (tpu.Slice{Ref: ref, Condition: incident.Lost, Incarnation: r.Incarnation}); err != nil {\n"},
		{"functions/recreate/handler.go", "	if _, err = h.Fleet.Feed(ctx, w, s); err != nil {\n		return w, s, err\n	}\n", ""},
		{"shared/incident/look.go", "	m.line(LineSeen, text, \"\")\n	m.decided(\"incident opened: \"+words(t.Cause)+\"; look", "	m.line(LineSeen, text, \"\")\n	m.lose(m.w.Slice(t.Slice), text)\n	m.decided(\"incident opened: \"+words(t.Cause)+\"; look"},
	}},
	{"7 rank", "what a listing does not reach is gone", []edit{
		{"functions/patrol/handler.go", "	if list.Partial {\n		return nil // what is not listed may be there all the same\n	}\n", ""},
	}},
	{"8 progress", "what lives is deleted without a checkpoint", []edit{
		{"shared/incident/replace.go", "	return (!s.leftBehind() || !s.usable().IsZero()) && m.w", "	return false && m.w"},
	}},
	{"8 progress", "maintenance begins though the save is torn", []edit{
		{"shared/incident/save.go", "	if !e.Found {\n		m.unverified(e)\n		return\n	}\n	p := &m.w.Progress\n", "	if !e.Found && in.Phase == Resuming {\n		m.unverified(e)\n		return\n	}\n	p := &m.w.Progress\n"},
	}},
	{"8 progress", "a training hangs as soon as its lines are late", []edit{
		{"shared/incident/hang.go", "	case early && (!runs || m.p.Unreadable != \"\"):\n", "	case false && early:\n"},
		{"shared/incident/hang.go", "		if m.w.Slices[i].Heard.At.Before(since.Add(usual)) {\n", "		if false {\n"},
	}},
	{"9 brake", "no slot is taken", []edit{
		{"shared/ledger/begin.go", "	err = a.Ledger.Take(ctx, w.Project, zone, id, limits, now)\n", "	err = nil\n"},
	}},
	{"9 brake", "the bound is not looked at", []edit{
		{"shared/ledger/brake.go", "		case len(s.Taken) >= limit:\n", "		case len(s.Taken) >= limit+100:\n"},
	}},
	{"10 lost", "acknowledged though nothing was stored", []edit{
		{"shared/ledger/advance.go", "	rev, err = a.Ledger.Save(ctx, w, rev)\n	if err != nil {\n		return w, false, err\n	}\n", "	rev, err = a.Ledger.Save(ctx, w, rev)\n	if err != nil {\n		return w, true, nil\n	}\n"},
	}},
	{"10 lost", "the look has no deadline", []edit{
		{"shared/incident/look.go", "	m.enter(Looking, m.now.Add(LookFor))\n", "	m.enter(Looking, time.Time{})\n"},
	}},
	{"10 lost", "after six requests nothing is looked after", []edit{
		{"shared/incident/maintenance.go", "	case m.w.leftAlone(s):\n		return false\n	case m.from", "	case m.w.leftAlone(s) || m.w.Epoch > 6:\n		return false\n	case m.from"},
	}},
	{"10 lost", "nobody is told of a training that fails for good", []edit{
		{"shared/incident/training.go", "		if m.opens(s) && !m.left() && s.Condition", "		if false && s.Condition"},
		{"shared/incident/training.go", "		if late || !m.opens(s) || m.left() {\n", "		if true {\n"},
		{"shared/incident/hang.go", "	return since.After(w.Progress.Told)\n", "	return since.IsZero()\n"},
	}},
	{"record", "a request for a save is not recorded", []edit{
		{"shared/incident/call.go", "		if w.Directory != \"\" {\n			all", "		if false {\n			all"},
		{"shared/incident/call.go", "s := w.Slices[i]; s.Condition == Ready {", "s := w.Slices[i]; s.Condition == Gone {"},
	}},
	{"record", "what was held back is told as called", []edit{
		{"shared/incident/call.go", "			c.Answered, c.NotMade, c.Code = m.now, true, e.Code\n", "			c.Answered = m.now\n"},
	}},
	{"owner's word", "a training that hangs is restarted unasked", []edit{
		{"shared/incident/hang.go", "	case m.p.Hang != policy.HangRestart:\n", "	case false && m.p.Hang != policy.HangRestart:\n"},
		{"shared/incident/training.go", "in.Cause == events.CauseHang && m.p.Hang", "false && m.p.Hang"},
	}},
	{"owner's word", "the pause is not read", []edit{
		{"shared/ledger/begin.go", "	pause, err := a.Ledger.Pause(ctx)\n", "	var pause *incident.Pause\n"},
	}},
	{"owner's word", "idle slices are deleted at once", []edit{
		{"shared/incident/discard.go", "Due: m.now.Add(m.p.DeleteAfter)}", "Due: m.now}"},
		{"shared/incident/discard.go", "	if due := idle.Since.Add(m.p.DeleteAfter); m", "	if due := idle.Since; m"},
	}},
	{"owner's word", "a person's word keeps no idle slices", []edit{
		{"shared/incident/operator.go", "	m.stirred()\n	m.w.Orders", "	m.w.Orders"},
	}},
	{"8 progress", "idle slices are deleted without a look at their checkpoint", []edit{
		{"shared/incident/discard.go", "	case !m.w.Incident.Save.Verified && !m", "	case false && !m"},
	}},
	{"owner's word", "a policy that was tightened does not count", []edit{
		{"shared/ledger/begin.go", "level != policy.Yes {", "level != policy.Yes && level != policy.No {"},
		{"shared/ledger/begin.go", "	if p.Unreadable != \"\" {", "	if false {"},
	}},
}

// rare are those that it takes hostile faults to catch, over a fleet whose incidents often go ways that are rare elsewhere.
var rare = []mutant{
	{"2 owner", "what is ordered for an incident that cleans up is created all the same", []edit{
		{"shared/incident/task.go", "return in.Phase == Clearing && t.Action", "return false && t.Action"},
	}},
	{"2 owner", "what is only stopped is deleted", []edit{
		{"shared/incident/replace.go", "s.Condition != Ready && !s.onlyStopped() && !m.unsaved(s) {\n", "s.Condition != Ready {\n"},
		{"shared/incident/stopped.go", "	if !s.onlyStopped() || !s.Replace", "	if s.onlyStopped() || !s.Replace"},
	}},
	{"owner's word", "suspected abuse stops nothing", []edit{
		{"shared/incident/look.go", "	if m.w.Incident == nil || !m.abused() {\n", "	if m.w.Incident == nil || m.w.Incident.ID != \"\" {\n"},
	}},
	{"4 one", "suspected abuse is told again and again", []edit{
		{"shared/incident/workload.go", " || s.discarded() || w.barred()\n", " || s.discarded()\n"},
	}},
	{"4 one", "a suspicion is never taken back", []edit{
		{"shared/incident/look.go", "(e.Abuse || e.Condition == Ready) {", "e.Abuse {"},
	}},
	{"4 one", "what its owner moves becomes a workload of its own", []edit{
		{"shared/fleet/fleet.go", "	if known == nil || !livesElsewhere(w, s) {\n", "	if known == nil || known != nil {\n"},
	}},
	{"3 admitted", "idle slices are deleted though training runs again", []edit{
		{"shared/incident/discard.go", "	if idle := m.w.Idle; idle != nil && m.when().After(idle.Since) {\n", "	if false {\n"},
		{"shared/incident/discard.go", "	if m.phase() == Discarding && m.when().After(m.w.Incident.Down) {\n", "	if false {\n"},
		{"shared/incident/discard.go", "	case heard && why != \"\":\n", "	case heard && false:\n"},
		{"shared/incident/advance.go", "		m.keepWhatTrains()\n", ""},
		{"shared/incident/discard.go", "	case why != \"\": // nothing", "	case false: // nothing"},
		{"shared/incident/task.go", " || in.Kept != (Kept{}) && t", " || false && t"},
	}},
}
