package world

// WasOpen reports whether a step left an incident open.
func (s *Story) WasOpen(in Result) bool {
	_, open := s.opened[in.Workload+" "+in.ID]
	return open
}
