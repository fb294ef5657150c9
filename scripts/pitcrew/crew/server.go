//go:build unix

package crew

import (
	"net"

	"pitstop.internal/scripts/pitcrew/metadata"
)

// FreeServer is where the hosts of an attempt may meet: the address of this machine, which is worker 0 of slice 0, and a port that
// is free now. Nothing holds the port until the training does.
func FreeServer(m metadata.Machine) (string, error) {
	l, err := net.Listen("tcp", ":0") //nolint:gosec,noctx // it is closed at once
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "", err
	}
	if err := l.Close(); err != nil {
		return "", err
	}
	host := "127.0.0.1"
	switch {
	case len(m.Peers) > 0:
		host = m.Peers[0]
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
	case m.Slices > 1:
		host = m.Host
	}
	return net.JoinHostPort(host, port), nil
}

// server0 is where the hosts of an attempt may meet that is about to begin, chosen anew for each; empty where another slice says it.
func (c *crew) server0() string {
	if c.leader == nil || c.Machine.Slice > 0 {
		return ""
	}
	if c.meeting == "" {
		var err error
		c.meeting, err = FreeServer(c.Machine)
		c.fault("a free port", err)
	}
	return c.meeting
}
