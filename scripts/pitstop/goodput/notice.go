package goodput

import (
	"cmp"
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
	done       time.Time     // when the slice was back from it
}

// stage is how far the maintenance of one worker is.
type stage int

const (
	pending stage = iota + 1
	ongoing
)

// another reports whether a notice now is of other maintenance, and not of the same maintenance at a later time.
func (n *notice) another(window, now time.Time) bool {
	return !n.end.IsZero() && window.After(n.end) && (n.began || n.met || now.After(n.end.Add(aside)))
}

// sameWindow reports whether two notices are of one window.
func (n *notice) sameWindow(o *notice) bool { return n != nil && n.first.Equal(o.first) }

// isOver notes that the slice is back, and whether that was from the announced maintenance.
func (n *notice) isOver(met bool, now time.Time) {
	if n == nil {
		return
	}
	n.met = n.met || met
	for _, s := range n.workers {
		if s == pending {
			return
		}
	}
	n.done = cmp.Or(n.done, now)
}

// known is a copy of the notice as it stands now. A loss is measured against it, even if the notice changes later.
func (n *notice) known() *notice {
	if n == nil {
		return nil
	}
	k := *n
	return &k
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
		k.workers[worker], k.done = pending, time.Time{}
	case events.NoticeOngoing:
		if !k.began {
			k.began = true
			a.report.Notices.Began++
		}
		if k.workers[worker] == ongoing {
			return // it is told again, as when the window moves; another loss has an entry of its own
		}
		k.workers[worker], k.done = ongoing, time.Time{}
		a.loss(m, worker, events.CauseMaintenance)
	default:
	}
}

// noticeGone notes that no maintenance is announced any more for a worker, or for all: it is done, or withdrawn.
func (a *Account) noticeGone(m *machine, worker int) {
	if n := m.notice; n != nil {
		delete(n.workers, worker)
		_, node := n.workers[-1]
		if worker < 0 || len(n.workers) == 0 || node && len(n.workers) == 1 {
			if !n.began && !n.met && m.gap == nil {
				a.report.Notices.Withdrawn++
			}
			m.notice = nil
		}
	}
	if m.gap != nil && m.gap.Cause == events.CauseMaintenance {
		a.restarted(m, worker)
	}
}

// announces says whether a notice announced a loss. Maintenance may be started by hand, so it counts at any time between its
// notice and the end of its window. A loss without a better cause counts only in the window, until the maintenance is over.
func (a *Account) announces(l *Loss, n *notice) {
	if n == nil || !n.first.Before(l.At) {
		return
	}
	planned, end := l.Cause == events.CauseMaintenance, n.end
	if !n.done.IsZero() && (!planned || end.IsZero()) {
		end = n.done
	}
	early := !planned && !n.start.IsZero() && l.At.Before(n.start.Add(-aside))
	if !planned && !vague(l.Cause) || early || !end.IsZero() && l.At.After(end.Add(aside)) {
		return
	}
	l.Announced, l.Lead = true, l.At.Sub(n.first).Seconds()
	l.InTime = l.At.Sub(n.first) >= a.lead
}
