package goodput

import (
	"time"

	"pitstop.internal/events"
)

// notice is announced maintenance of one incarnation, until it is gone for each of its workers.
type notice struct {
	first      time.Time // when this window was first announced
	start, end time.Time
	workers    map[int]stage // those that it was announced for, and is not gone for; -1 is the node
	began      bool          // an entry says so
	met        bool          // a loss came of it
	over       time.Time     // when the last of them was back
}

// stage is how far the maintenance of one worker is.
type stage int

const (
	pending stage = iota
	ongoing
	mended // it was restarted, and its maintenance is not called gone yet
)

// another reports whether a notice now is of other maintenance, and not of the same maintenance at a later time.
func (n *notice) another(window, now time.Time) bool {
	return !n.end.IsZero() && window.After(n.end) && (n.began || n.met || now.After(n.end.Add(aside)))
}

// mend notes that a worker whose maintenance is under way is back; -1 is all of them.
func (n *notice) mend(worker int, now time.Time) {
	left := false
	for w, s := range n.workers {
		if s == ongoing && (worker < 0 || w == worker) {
			n.workers[w] = mended
		}
		left = left || n.workers[w] != mended
	}
	if !left && n.over.IsZero() {
		n.over = now
	}
}

// known is a copy of the notice as it stands now. A loss is measured against it, even if the notice changes later.
func (n *notice) known() *notice {
	if n == nil {
		return nil
	}
	k := *n
	return &k
}

// gone notes that no maintenance is announced for a worker any more, and reports whether that was the last of them.
func (n *notice) gone(worker int) bool {
	delete(n.workers, worker)
	_, node := n.workers[-1]
	return worker < 0 || len(n.workers) == 0 || node && len(n.workers) == 1
}

func (a *Account) announced(m *machine, worker int, n events.Notice) {
	if n.Status == events.NoticeGone {
		a.noticeGone(m, worker)
		return
	}
	if m.notice == nil || m.notice.another(n.WindowStart, a.now) {
		m.notice = &notice{first: a.now, start: n.WindowStart, end: n.WindowEnd, workers: map[int]stage{}}
		a.report.Notices.Announced++
	}
	k := m.notice
	if !n.WindowStart.IsZero() {
		if n.Status == events.NoticePending && n.WindowStart.Before(k.start) {
			k.first = a.now
		}
		k.start, k.end = n.WindowStart, n.WindowEnd
	}
	switch n.Status {
	case events.NoticePending:
		k.workers[worker], k.over = pending, time.Time{}
	case events.NoticeOngoing:
		if !k.began {
			k.began = true
			a.report.Notices.Began++
		}
		if k.workers[worker] == mended {
			return // it is told again, as when the window moves; another loss has an entry of its own
		}
		k.workers[worker], k.over = ongoing, time.Time{}
		a.loss(m, worker, events.CauseMaintenance)
	default:
	}
}

// noticeGone notes that no maintenance is announced any more: it is done, or withdrawn.
func (a *Account) noticeGone(m *machine, worker int) {
	if n := m.notice; n != nil && n.gone(worker) {
		if !n.began && !n.met && m.gap == nil {
			a.report.Notices.Withdrawn++
		}
		m.notice = nil
	}
	if m.gap != nil && m.gap.loss.Cause == events.CauseMaintenance {
		a.restarted(m, worker)
	}
}

// attribute says whether a notice announced a loss. Maintenance may be started by hand, so it counts at any time between its
// notice and the end of its window. A loss without a better cause counts only in the window, until the maintenance is over.
func (a *Account) attribute(l *Loss, g *gap) {
	n := g.notice
	if n == nil || !n.first.Before(g.from) {
		return
	}
	planned, end := l.Cause == events.CauseMaintenance, n.end
	if !n.over.IsZero() && (!planned || end.IsZero()) {
		end = n.over
	}
	early := !planned && !n.start.IsZero() && g.from.Before(n.start.Add(-aside))
	if !planned && !vague(l.Cause) || early || !end.IsZero() && g.from.After(end.Add(aside)) {
		return
	}
	l.Announced, l.Lead = true, g.from.Sub(n.first).Seconds()
	l.InTime = g.from.Sub(n.first) >= a.lead
}
