package demo

import (
	"io"
	"net/http"
	"strings"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
)

// maxBody is the longest body of a request to a function, in bytes: a message of Pub/Sub's greatest size, in base64, with its attributes.
const maxBody = 2 * events.MaxBytes

// functionAt is the function that the functions framework serves at a path: at its entry point. It is empty where there is none.
func functionAt(path string) string {
	for _, f := range world.Functions {
		if path == "/"+f.Entry {
			return f.Name
		}
	}
	return ""
}

// Serves reports whether a path is that of a function.
func Serves(path string) bool { return functionAt(path) != "" }

// ServeFunction has the function at the request's path answer it, when no other function is at work. The answer is the function's status,
// and 503 while the function is killed.
func (d *Demo) ServeFunction(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	status := http.StatusServiceUnavailable
	err = d.inTurn(r.Context(), func() error {
		if !d.isDown(functionAt(r.URL.Path)) {
			status = d.Ask(r.Context(), r.Method, strings.TrimPrefix(r.URL.Path, "/"), r.Header, body)
		}
		return nil
	})
	if err != nil { // the caller has gone, or the demo ends
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(status)
}
