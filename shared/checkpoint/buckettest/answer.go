package buckettest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
)

// Transport reaches the server without a socket, for any host in the request.
func (s *Server) Transport() http.RoundTripper { return transport{s} }

type transport struct{ server *Server }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (res *http.Response, err error) {
	if r.Body != nil {
		defer r.Body.Close() //nolint:errcheck // it was only read
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	served := r.Clone(r.Context())
	if served.Body == nil {
		served.Body = http.NoBody
	}
	rec := recorder{header: http.Header{}, status: http.StatusOK}
	defer func() {
		// A handler that gives up this way cuts the connection of a socket.
		if p := recover(); p == http.ErrAbortHandler { //nolint:errorlint // it is compared as net/http does
			res, err = nil, fmt.Errorf("the answer was lost: %w", io.ErrUnexpectedEOF)
		} else if p != nil {
			panic(p)
		}
	}()
	t.server.ServeHTTP(&rec, served)
	return &http.Response{
		Status: strconv.Itoa(rec.status) + " " + http.StatusText(rec.status), StatusCode: rec.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: rec.header,
		Body: io.NopCloser(&rec.body), ContentLength: int64(rec.body.Len()), Request: r,
	}, nil
}

type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

func answerJSON(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		panic(err) // the bodies are maps, lists and strings
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data) //nolint:errcheck // the caller sees that it is short
}

// answerError writes an error as the API does: JSON, and for a download that finds nothing a line of text.
func answerError(w http.ResponseWriter, err error, media bool) {
	var f fail
	if !errors.As(err, &f) {
		f = fail{status: http.StatusInternalServerError, reason: "internalError", message: err.Error()}
	}
	if media && f.status == http.StatusNotFound {
		w.Header().Set("Content-Type", "text/html; charset=UTF-8")
		w.WriteHeader(f.status)
		_, _ = io.WriteString(w, f.message) //nolint:errcheck // likewise
		return
	}
	item := map[string]any{"message": f.message, "domain": "global", "reason": f.reason}
	if f.location != "" {
		item["locationType"], item["location"] = f.locTyp, f.location
	}
	answerJSON(w, f.status, map[string]any{
		"error": map[string]any{"code": f.status, "message": f.message, "errors": []any{item}},
	})
}

func answerMedia(w http.ResponseWriter, o object) {
	h := w.Header()
	h.Set("Content-Type", o.contentType)
	h.Set("Content-Length", strconv.Itoa(len(o.content)))
	h.Set("Last-Modified", o.updated.UTC().Format(http.TimeFormat))
	h.Set("Etag", etag(&o))
	h.Set("X-Goog-Generation", strconv.FormatInt(o.generation, 10))
	h.Set("X-Goog-Metageneration", "1")
	h.Set("X-Goog-Storage-Class", "STANDARD")
	h.Set("X-Goog-Stored-Content-Length", strconv.Itoa(len(o.content)))
	h.Add("X-Goog-Hash", "crc32c="+o.crc32c)
	h.Add("X-Goog-Hash", "md5="+o.md5)
	if o.cacheControl != "" {
		h.Set("Cache-Control", o.cacheControl)
	}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(o.content) //nolint:errcheck // likewise
}

// masked applies a field mask, such as a,b,c(d,e), so that fields outside the mask are missing here too.
func masked(body map[string]any, mask string) map[string]any {
	if mask == "" {
		return body
	}
	out := map[string]any{}
	for _, field := range split(mask) {
		name, sub, nested := strings.Cut(field, "(")
		v, ok := body[name]
		if !ok {
			continue
		}
		items, list := v.([]any)
		if !nested || !list {
			out[name] = v
			continue
		}
		cut := make([]any, 0, len(items))
		for _, item := range items {
			if m, ok := item.(map[string]any); ok {
				cut = append(cut, masked(m, strings.TrimSuffix(sub, ")")))
			}
		}
		out[name] = cut
	}
	return out
}

// split cuts a mask at the commas outside of parentheses.
func split(mask string) []string {
	var (
		fields       []string
		depth, start int
	)
	for i, r := range mask {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			fields, start = append(fields, mask[start:i]), i+1
		}
	}
	return append(fields, mask[start:])
}
