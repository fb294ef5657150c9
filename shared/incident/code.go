//go:build !heart

package incident

import "pitstop.internal/events"

// watchCode is the reason why Pitstop only watches an incident.
func (m *machine) watchCode() Code {
	if m.p.Unreadable != "" {
		return CodePolicyUnreadable
	}
	if m.w.Incident.Troubles[0].Cause == events.CauseHang && !m.watchOnly() {
		return CodeHangReport
	}
	return CodeWatchOnly
}

// RefusedError says why a request must not be carried out.
type RefusedError struct {
	Code Code
	Text string
}

func (r *RefusedError) Error() string { return "refused: " + r.Text }

// Is makes every refusal match ErrRefused.
func (r *RefusedError) Is(target error) bool { return target == ErrRefused }
