package incident

// PhaseOf is the phase that follows from a document's facts.
func PhaseOf(w Workload) Phase { return w.phase() }
