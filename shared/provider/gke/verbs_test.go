package gke

import (
	"strings"
	"testing"

	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
)

// TestTheClassOfARefusal: what is a person has to mend has another class than a failure after which Pitstop tries again.
func TestTheClassOfARefusal(t *testing.T) {
	said := func(reason, message string) string {
		return `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + reason + `","message":"` + message + `"}`
	}
	for _, c := range []struct {
		code  int
		body  string
		class reason.FailureClass
	}{
		{409, said("AlreadyExists", `jobs.batch \"llama\" already exists`), reason.Exists},
		{409, said("Conflict", `Operation cannot be fulfilled on resourcequotas \"q\": the object has been modified`), reason.Busy},
		{403, said("Forbidden", `jobs.batch \"llama\" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=4, limited: count/jobs.batch=4`), reason.Quota},
		{403, said("Forbidden", `jobs.batch is forbidden: User \"p@x\" cannot create resource \"jobs\" in API group \"batch\" in the namespace \"train\"`), reason.Permission},
		{403, said("Forbidden", `jobs.batch \"llama\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: the image is not listed`), reason.Invalid},
		{403, said("Forbidden", `admission webhook \"w.example\" denied the request: no team label`), reason.Invalid},
		{422, said("Invalid", `jobs.batch \"llama\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: the image is not listed`), reason.Invalid},
		{422, said("Invalid", `Job.batch \"llama\" is invalid: spec.selector: Required value`), reason.Invalid},
		{400, said("BadRequest", `strict decoding error: unknown field \"spec.x\"`), reason.Invalid},
		{413, said("RequestEntityTooLarge", `limit is 3145728`), reason.Invalid},
		{401, said("Unauthorized", `Unauthorized`), reason.Permission},
		{404, said("NotFound", `namespaces \"train\" not found`), reason.NotFound},
		{408, said("Timeout", `try again`), reason.Transient},
		{429, said("TooManyRequests", `the server has received too many requests`), reason.Transient},
		{500, said("InternalError", `failed calling webhook \"w\": connection refused`), reason.Transient},
		{504, said("Timeout", `request did not complete within the allotted timeout`), reason.Transient},
		// A page on the way to the API server.
		{404, `404 page not found`, reason.Transient},
		{403, `<html>denied</html>`, reason.Permission},
		{409, `{"kind":"Job"}`, reason.Transient},
		{302, ``, reason.Transient},
		{502, `{"kind":"Status"`, reason.Transient},
	} {
		no := readRefusal(c.code, strings.NewReader(c.body))
		if no.class() != c.class || no.message() == "" {
			t.Errorf("%d %s: %s (%s), want %s", c.code, c.body, no.class(), no.message(), c.class)
		}
	}
}

// TestAQuotaHasRoomOnceTheObjectIsDeleted: by one, for that is what the object itself counts.
func TestAQuotaHasRoomOnceTheObjectIsDeleted(t *testing.T) {
	said := func(end string) string {
		return `jobs.batch "llama" is forbidden: exceeded quota: q, requested: count/jobs.batch=1` + end
	}
	for message, want := range map[string]bool{
		said(", used: count/jobs.batch=4, limited: count/jobs.batch=4"):                         true,
		said(", used: count/jobs.batch=4, limited: count/jobs.batch=3"):                         false,
		said(", used: count/jobs.batch=4, limited: count/jobs.batch=0"):                         false,
		said(", used: count/jobs.batch=4, limited: count/jobs.batch=1k"):                        false, // not a number that is read
		said(", used: count/jobs.batch=99999999999999999999, limited: count/jobs.batch=4"):      false,
		said(",pods=1, used: count/jobs.batch=4,pods=9, limited: count/jobs.batch=4,pods=1"):    false, // another one than its own
		said(", used: count/jobs.batch=4, limited: count/jobs.batch=4") + " and something else": false,
		`jobs.batch "llama" is forbidden: exceeded quota: q`:                                    false,
		``: false,
	} {
		if got := fitsOnceDeleted(message); got != want {
			t.Errorf("%s: %v, want %v", message, got, want)
		}
	}
}

// TestARefusalSaysWhy: in the words of the API server, on one line that a document can hold.
func TestARefusalSaysWhy(t *testing.T) {
	for body, want := range map[string]string{
		`{"kind":"Status","message":"the image\n  is not listed"}`:                  "the image is not listed",
		`{"kind":"Status","message":"` + strings.Repeat("ö", longestMessage) + `"}`: strings.Repeat("ö", longestMessage/2) + "...",
		`{"kind":"Status"}`: "answer 422",
		// The value may be a whole Pod, with arguments and the values of variables, and as short as this one.
		`{"kind":"Status","message":"Job.batch \"a\" is invalid: [spec.template: Invalid value: core.PodTemplateSpec{Args:[]string{\"--pin=1234\"}}: field is immutable, spec.x: Required value]"}`: `Job.batch "a" is invalid: [spec.template: Invalid value`,
		`{"kind":"Status","message":"spec.template.spec.containers[0].env[0].name: Unsupported value: \"ab\": supported values: \"A\""}`:                                                            "spec.template.spec.containers[0].env[0].name: Unsupported value",
		`{"kind":"Status","message":"spec.rules[1]: Duplicate value: {\"key\":\"1234\"}"}`:                                                                                                          "spec.rules[1]: Duplicate value",
		`no JSON`: "answer 422",
	} {
		if got := readRefusal(422, strings.NewReader(body)).message(); got != want {
			t.Errorf("%.60s: %q, want %q", body, got, want)
		}
	}
}

// TestOnlyANameIsPutIntoAPath: anything else could be the name of all Jobs, or of the namespace.
func TestOnlyANameIsPutIntoAPath(t *testing.T) {
	c := New([]Cluster{{Project: "p", Location: "us-east5", Name: "c"}}, nil, nil) // no client is opened
	for _, r := range []provider.Ref{
		{Zone: "us-east5/c/train"},
		{Zone: "us-east5/c/train", Name: ".."},
		{Zone: "us-east5/c/train", Name: "a/b"},
		{Zone: "us-east5/c/train", Name: "a?b"},
		{Zone: "us-east5/c/train", Name: "a", QueuedResource: "."},
		{Zone: "us-east5/c", Name: "a"},
		{Zone: "us-east5/c/../x", Name: "a"},
		{Zone: "us-east5/c/", Name: "a"},
		{Zone: "us-east5/other/train", Name: "a"},
	} {
		r.Project, r.Life = "p", "u"
		if op, err := c.Delete(t.Context(), r, "id"); op != "" || provider.Failure(err) == nil || provider.Failure(err).Class != reason.Invalid {
			t.Errorf("%+v: %q, %v", r, op, err)
		}
	}
}

// FuzzReadRefusal: whatever an answer is, it has a class and one line that says why.
func FuzzReadRefusal(f *testing.F) {
	f.Add(409, `{"kind":"Status","reason":"AlreadyExists","message":"jobs.batch \"a\" already exists"}`)
	f.Add(403, `{"kind":"Status","message":"a\u2028b\u0000"}`)
	f.Add(422, `{"kind":"Status","message":"spec: Invalid value: 1"}`)
	f.Add(403, `{"kind":"Status","message":"exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=4, limited: count/jobs.batch=4"}`)
	f.Add(500, `[]`)
	f.Fuzz(func(t *testing.T, code int, body string) {
		no := readRefusal(code, strings.NewReader(body))
		if said := no.message(); said == "" || len(said) > longestMessage+3 || strings.ContainsAny(said, "\n\r\t") {
			t.Errorf("%q", said)
		}
		if no.Kind == "" && no.class() != reason.Transient && no.class() != reason.Permission {
			t.Errorf("a page of somebody else is %s", no.class())
		}
		if fitsOnceDeleted(no.message()) && !strings.Contains(no.Message, ", limited: ") {
			t.Errorf("%q makes room", no.message())
		}
	})
}
