package cloudtpu

import "pitstop.internal/shared/provider"

// Orders are the specifications of nodes.
type Orders struct{}

var _ provider.Orders = Orders{}

// Waits implements provider.Orders: a reservation has its own capacity.
func (Orders) Waits(spec []byte) bool { return Reserved(spec) }

// IsApart implements provider.Orders.
func (Orders) IsApart(spec []byte) bool { return IsApart(spec) }

// Whole implements provider.Orders.
func (Orders) Whole(spec []byte, values map[string]string) ([]byte, error) {
	return Whole(spec, values)
}

// Together implements provider.Orders.
func (Orders) Together(names []string, specs [][]byte) ([]byte, error) { return Together(names, specs) }
