package cloud

// Waiting is how many requests wait for a change at the metadata server of a worker.
func (c *Cloud) Waiting(zone, node string, worker int) int {
	m := c.machine(zone, node, worker)
	if m == nil {
		return 0
	}
	return m.Waiting()
}
