// Package loopback keeps the pages of browsers from the servers that a command opens on this machine: a page of any site may send requests
// there, and by a name of its own that leads to loopback it could read the answers too.
package loopback

import (
	"net"
	"net/http"
	"strings"
)

// Only serves requests that name the server as this machine alone does, and that no page sent.
func Only(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case len(r.Header["Origin"]) > 0:
			http.Error(w, "a page of a browser sent this (it has the header Origin); only programs may call", http.StatusForbidden)
		case !own(r.Host):
			http.Error(w, "the header Host is no name of this machine: call 127.0.0.1, [::1] or localhost", http.StatusForbidden)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// own reports whether HOST or HOST:PORT is a name of this machine that no other can take.
func own(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
