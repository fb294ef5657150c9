package gketest

import (
	"cmp"
	"fmt"
	"net/http"
)

// refusal is an error of the API: it answers with a Status object.
type refusal struct {
	code            int
	reason, message string
	details         object
	// after is how many seconds a caller should wait.
	after int
}

func (r *refusal) status() object {
	s := object{
		"kind": "Status", "apiVersion": "v1", "metadata": object{}, "status": "Failure", "message": r.message, "reason": r.reason, "code": r.code,
	}
	if r.details != nil {
		s["details"] = r.details
	}
	return s
}

// qualified is a resource with its group, as messages name it.
func (r resource) qualified() string {
	if r.group == "" {
		return r.plural
	}
	return r.plural + "." + r.group
}

func (r resource) about(name string) object {
	return object{"name": name, "group": r.group, "kind": r.plural}
}

func (r resource) notFound(name string) *refusal {
	return &refusal{http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", r.qualified(), name), r.about(name), 0}
}

func (r resource) exists(name string) *refusal {
	return &refusal{http.StatusConflict, "AlreadyExists", fmt.Sprintf("%s %q already exists", r.qualified(), name), r.about(name), 0}
}

func (r resource) conflict(name, why string) *refusal {
	return &refusal{
		http.StatusConflict, "Conflict", fmt.Sprintf("Operation cannot be fulfilled on %s %q: %s", r.qualified(), name, why), r.about(name), 0,
	}
}

const stale = "the object has been modified; please apply your changes to the latest version and try again"

func (r resource) invalid(name, path, why string) *refusal {
	kind := r.kind
	if r.group != "" {
		kind += "." + r.group
	}
	d := object{"name": name, "group": r.group, "kind": r.kind, "causes": []any{object{"reason": "FieldValueInvalid", "message": why, "field": path}}}
	return &refusal{http.StatusUnprocessableEntity, "Invalid", fmt.Sprintf("%s %q is invalid: %s: %s", kind, name, path, why), d, 0}
}

func badRequest(format string, args ...any) *refusal {
	return &refusal{code: http.StatusBadRequest, reason: "BadRequest", message: fmt.Sprintf(format, args...)}
}

// reasons are those of the answers that a fault gives.
var reasons = map[int]string{
	http.StatusBadRequest: "BadRequest", http.StatusUnauthorized: "Unauthorized", http.StatusForbidden: "Forbidden", http.StatusNotFound: "NotFound",
	http.StatusConflict: "Conflict", http.StatusGone: "Expired", http.StatusUnprocessableEntity: "Invalid", http.StatusTooManyRequests: "TooManyRequests",
	http.StatusInternalServerError: "InternalError", http.StatusServiceUnavailable: "ServiceUnavailable", http.StatusGatewayTimeout: "Timeout",
}

func faulty(code int, message string, after int) *refusal {
	r := &refusal{code: code, reason: reasons[code], message: cmp.Or(message, "injected"), after: after}
	if after > 0 {
		r.details = object{"retryAfterSeconds": after}
	}
	return r
}
