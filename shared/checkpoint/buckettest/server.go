// Package buckettest is a Cloud Storage in one process: the part of its JSON API that the generated client uses for objects,
// with generations, preconditions, pages and the error bodies of the real one. It keeps everything in memory, takes the time
// from its caller, and can be made to fail. It refuses unknown parameters, so that a call cannot work here but fail on the
// real one.
package buckettest

import (
	"cmp"
	"crypto/md5" //nolint:gosec // the API's checksum
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Server is the simulated storage: an http.Handler for a socket, a Transport for none. Safe for concurrent use.
type Server struct {
	now      func() time.Time
	onChange func(bucket, name string, deleted bool)

	mu      sync.Mutex
	buckets map[string]*bucket
	last    int64 // the newest generation
	faults  []Fault
	calls   map[Method]int
}

// Location is a bucket's location: a name in capitals, the type (region if empty), and for a pair without a name its
// regions, separated by a comma.
type Location struct{ Name, Type, Regions string }

// Place puts a bucket somewhere. Without that it is in the multi-region US, as the real ones are. A missing one is made.
func (s *Server) Place(bucket string, l Location) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.Type == "" {
		l.Type = "region"
	}
	s.bucket(bucket).location = l
}

// Rules gives a bucket lifecycle rules, in the API's form. They delete nothing here. A missing bucket is made.
func (s *Server) Rules(bucket, rules string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bucket(bucket).rules = jsontext.Value(rules)
}

// place is the API's form of a bucket's location and lifecycle.
func (b *bucket) place(name string) map[string]any {
	body := map[string]any{
		"kind": "storage#bucket", "id": name, "name": name, "location": b.location.Name, "locationType": b.location.Type,
	}
	if b.location.Regions != "" {
		body["customPlacementConfig"] = map[string]any{"dataLocations": strings.Split(b.location.Regions, ",")}
	}
	if b.rules != nil {
		body["lifecycle"] = map[string]any{"rule": b.rules}
	}
	return body
}

type bucket struct {
	location Location
	rules    jsontext.Value
	names    []string // of the objects, sorted
	objects  map[string]*object
}

type object struct {
	content      []byte
	generation   int64
	updated      time.Time
	contentType  string
	cacheControl string
	md5, crc32c  string // as the API writes them
}

// New makes a storage with these buckets, all empty. Times are those of now.
func New(now func() time.Time, buckets ...string) *Server {
	s := &Server{now: now, buckets: map[string]*bucket{}, calls: map[Method]int{}}
	for _, b := range buckets {
		s.bucket(b)
	}
	return s
}

// Add makes an empty bucket, unless there is one of that name.
func (s *Server) Add(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bucket(name)
}

// OnChange sets a function that runs after every write or delete of an object, by a call or from this process. It runs
// without a lock and may call the server. Set it before the first call.
func (s *Server) OnChange(f func(bucket, name string, deleted bool)) { s.onChange = f }

// bucket returns a bucket and makes it if it is missing.
func (s *Server) bucket(name string) *bucket {
	b := s.buckets[name]
	if b == nil {
		b = &bucket{location: Location{Name: "US", Type: "multi-region"}, objects: map[string]*object{}}
		s.buckets[name] = b
	}
	return b
}

// Put writes an object from this process and returns its generation. A missing bucket is made.
func (s *Server) Put(bucket, name string, content []byte) int64 {
	s.mu.Lock()
	o := s.write(s.bucket(bucket), name, content, "application/octet-stream", "")
	s.mu.Unlock()
	s.changed(bucket, name, false)
	return o.generation
}

// Get reads an object from this process; ok is false when there is none.
func (s *Server) Get(bucket, name string) (content []byte, generation int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.buckets[bucket]; b != nil && b.objects[name] != nil {
		o := b.objects[name]
		return slices.Clone(o.content), o.generation, true
	}
	return nil, 0, false
}

// Updated is when an object was written last; zero when there is none.
func (s *Server) Updated(bucket, name string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.buckets[bucket]; b != nil && b.objects[name] != nil {
		return b.objects[name].updated
	}
	return time.Time{}
}

// List returns the names of the objects that begin with prefix, sorted.
func (s *Server) List(bucket, prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[bucket]
	if b == nil {
		return nil
	}
	return b.from(prefix, "")
}

// from returns the names that begin with prefix, sorted, and none before after.
func (b *bucket) from(prefix, after string) (names []string) {
	i, _ := slices.BinarySearch(b.names, max(prefix, after))
	for _, name := range b.names[i:] {
		if !strings.HasPrefix(name, prefix) {
			break
		}
		names = append(names, name)
	}
	return names
}

// Delete deletes an object from this process and reports whether there was one.
func (s *Server) Delete(bucket, name string) bool {
	s.mu.Lock()
	b := s.buckets[bucket]
	ok := b != nil && b.remove(name)
	s.mu.Unlock()
	if ok {
		s.changed(bucket, name, true)
	}
	return ok
}

func (b *bucket) remove(name string) bool {
	if b.objects[name] == nil {
		return false
	}
	delete(b.objects, name)
	i, _ := slices.BinarySearch(b.names, name)
	b.names = slices.Delete(b.names, i, i+1)
	return true
}

func (s *Server) write(b *bucket, name string, content []byte, contentType, cacheControl string) *object {
	now := s.now().UTC()
	// A generation is a time in microseconds, as in the real storage, and higher than every one before.
	s.last = max(s.last+1, now.UnixMicro())
	o := &object{
		content: slices.Clone(content), generation: s.last, updated: now.Truncate(time.Millisecond),
		contentType: contentType, cacheControl: cacheControl, md5: md5Of(content), crc32c: crcOf(content),
	}
	if i, known := slices.BinarySearch(b.names, name); !known {
		b.names = slices.Insert(b.names, i, name)
	}
	b.objects[name] = o
	return o
}

func (s *Server) changed(bucket, name string, deleted bool) {
	if s.onChange != nil {
		s.onChange(bucket, name, deleted)
	}
}

// Method is a method of the API.
type Method string

// The methods that are simulated.
const (
	MethodGet    Method = "get"
	MethodList   Method = "list"
	MethodInsert Method = "insert"
	MethodDelete Method = "delete"
	MethodLocate Method = "locate" // buckets.get
)

// Calls counts the calls of a method since the start, failed ones too.
func (s *Server) Calls(m Method) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[m]
}

// Fault describes how calls fail.
type Fault struct {
	Method Method
	// Times is how many calls fail; the fault is forgotten after that.
	Times int
	// Object limits the fault to calls for one object, or for listings to one prefix; empty means all.
	Object string
	// Status is the HTTP status of the answer, Reason the API's reason for it; a reason is chosen if there is none.
	Status int
	Reason string
	// LoseAnswer lets the call take effect and cuts the connection before the answer. Status is then not used.
	LoseAnswer bool
}

// Inject makes calls fail. Faults of the same method are used up in the order in which they came.
func (s *Server) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Times = max(1, f.Times)
	s.faults = append(s.faults, f)
}

// fault takes the fault for a call, if there is one.
func (s *Server) fault(m Method, name string) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[m]++
	for i := range s.faults {
		f := s.faults[i]
		if f.Method != m || f.Object != "" && f.Object != name {
			continue
		}
		if s.faults[i].Times--; s.faults[i].Times == 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		}
		return f, true
	}
	return Fault{}, false
}

// fail is an answer that is an error.
type fail struct {
	status           int
	reason, message  string
	location, locTyp string
}

func (f fail) Error() string { return f.message }

func notFound(bucket, name string) fail {
	return fail{status: http.StatusNotFound, reason: "notFound", message: "No such object: " + bucket + "/" + name}
}

func noBucket() fail {
	return fail{status: http.StatusNotFound, reason: "notFound", message: "The specified bucket does not exist."}
}

func precondition() fail {
	return fail{
		status: http.StatusPreconditionFailed, reason: "conditionNotMet",
		message:  "At least one of the pre-conditions you specified did not hold.",
		location: "If-Match", locTyp: "header",
	}
}

func badRequest(format string, args ...any) fail {
	return fail{status: http.StatusBadRequest, reason: "invalid", message: fmt.Sprintf(format, args...)}
}

func notSimulated(what string) fail {
	return fail{status: http.StatusNotImplemented, reason: "notImplemented", message: what + " is not simulated"}
}

// injected is the answer that a fault makes.
func injected(f Fault) fail {
	reasons := map[int][2]string{
		http.StatusUnauthorized: {"authError", "Invalid Credentials"},
		http.StatusForbidden: {"forbidden", "the caller does not have access to the Google Cloud Storage object. " +
			"Permission denied on resource (or it may not exist)."},
		http.StatusNotFound:            {"notFound", "Not Found"},
		http.StatusPreconditionFailed:  {"conditionNotMet", precondition().message},
		http.StatusTooManyRequests:     {"rateLimitExceeded", "The rate of changes to the object exceeds the limit."},
		http.StatusServiceUnavailable:  {"backendError", "We encountered an internal error. Please try again."},
		http.StatusInternalServerError: {"backendError", "We encountered an internal error. Please try again."},
	}
	r, ok := reasons[f.Status]
	if !ok {
		r = [2]string{"invalid", http.StatusText(f.Status)}
	}
	return fail{status: f.Status, reason: cmp.Or(f.Reason, r[0]), message: r[1]}
}

// call is one parsed call of the API.
type call struct {
	method       Method
	bucket, name string
	upload       bool
	query        url.Values
}

// The parameters of each method that are simulated; every method takes the common ones.
var (
	common = []string{"alt", "prettyPrint", "fields"}
	params = map[Method][]string{
		MethodGet:    {"generation", "ifGenerationMatch"},
		MethodList:   {"prefix", "delimiter", "pageToken", "maxResults"},
		MethodInsert: {"uploadType", "name", "ifGenerationMatch"},
		MethodDelete: {"generation", "ifGenerationMatch"},
	}
)

// shape is what tells one method from another: the parts of its path from the bucket on, the verb of HTTP, and whether it uploads.
type shape struct {
	parts  int
	verb   string
	upload bool
}

var calls = map[shape]Method{
	{1, http.MethodGet, false}: MethodLocate, {2, http.MethodGet, false}: MethodList, {2, http.MethodPost, true}: MethodInsert,
	{3, http.MethodGet, false}: MethodGet, {3, http.MethodDelete, false}: MethodDelete,
}

func parse(r *http.Request) (call, error) {
	c := call{query: r.URL.Query()}
	path := r.URL.EscapedPath()
	if path, c.upload = strings.CutPrefix(path, "/upload"); !strings.HasPrefix(path, "/storage/v1/b/") {
		return c, fail{status: http.StatusNotFound, reason: "notFound", message: "Not Found"}
	}
	// The client escapes the slashes of an object's name, so the path has a fixed number of parts.
	parts := strings.Split(strings.TrimPrefix(path, "/storage/v1/b/"), "/")
	for i := range parts {
		p, err := url.PathUnescape(parts[i])
		if err != nil {
			return c, badRequest("path %q: %v", path, err)
		}
		parts[i] = p
	}
	c.bucket = parts[0]
	if len(parts) > 1 && parts[1] != "o" {
		return c, notSimulated(r.Method + " " + path)
	}
	if len(parts) == 3 {
		c.name = parts[2]
	}
	var known bool
	if c.method, known = calls[shape{len(parts), r.Method, c.upload}]; !known {
		return c, notSimulated(r.Method + " " + path)
	}
	if c.method == MethodList {
		c.name = c.query.Get("prefix")
	}
	for p := range c.query {
		if !slices.Contains(common, p) && !slices.Contains(params[c.method], p) {
			return c, badRequest("parameter %s of %s is not simulated", p, c.method)
		}
	}
	return c, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := parse(r)
	if err != nil {
		answerError(w, err, false)
		return
	}
	media := c.method == MethodGet && c.query.Get("alt") == "media"
	var up upload
	if c.method == MethodInsert {
		if up, err = readUpload(r, c); err != nil {
			answerError(w, err, false)
			return
		}
		c.name = up.name
	}
	f, faulty := s.fault(c.method, c.name)
	if faulty && !f.LoseAnswer {
		answerError(w, injected(f), media)
		return
	}
	reply, err := s.do(c, up)
	if err == nil && (c.method == MethodInsert || c.method == MethodDelete) {
		s.changed(c.bucket, c.name, c.method == MethodDelete)
	}
	switch {
	case faulty:
		panic(http.ErrAbortHandler)
	case err != nil:
		answerError(w, err, media)
	case c.method == MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case media:
		answerMedia(w, reply.object)
	default:
		answerJSON(w, http.StatusOK, masked(reply.body, c.query.Get("fields")))
	}
}

type reply struct {
	body   map[string]any
	object object
}

// do carries out a call under the lock.
func (s *Server) do(c call, up upload) (reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[c.bucket]
	if b == nil {
		return reply{}, noBucket()
	}
	switch c.method {
	case MethodLocate:
		return reply{body: b.place(c.bucket)}, nil
	case MethodList:
		body, err := b.list(c)
		return reply{body: body}, err
	case MethodGet, MethodInsert, MethodDelete:
	}
	o := b.objects[c.name]
	if o == nil && c.method != MethodInsert {
		return reply{}, notFound(c.bucket, c.name)
	}
	if err := check(c, o); err != nil {
		return reply{}, err
	}
	switch c.method {
	case MethodDelete:
		b.remove(c.name)
		return reply{}, nil
	case MethodInsert:
		o = s.write(b, c.name, up.content, up.contentType, up.cacheControl)
	case MethodGet, MethodList, MethodLocate:
	}
	return reply{body: resource(c.bucket, c.name, o), object: *o}, nil
}

// check compares the object with the generation in the call; o is nil if there is no object.
func check(c call, o *object) error {
	var present int64
	if o != nil {
		present = o.generation
	}
	for _, p := range []string{"generation", "ifGenerationMatch"} {
		if !c.query.Has(p) {
			continue
		}
		want, err := strconv.ParseInt(c.query.Get(p), 10, 64)
		switch {
		case err != nil:
			return badRequest("Invalid value for %s: %q", p, c.query.Get(p))
		case want == present:
		case p == "generation":
			return notFound(c.bucket, c.name)
		default:
			return precondition()
		}
	}
	return nil
}

// list makes one page. Objects and prefixes count alike and share one order.
func (b *bucket) list(c call) (map[string]any, error) {
	const most = 1000
	size := most
	if c.query.Has("maxResults") {
		n, err := strconv.Atoi(c.query.Get("maxResults"))
		if err != nil || n < 1 {
			return nil, badRequest("Invalid value for maxResults: %q", c.query.Get("maxResults"))
		}
		size = min(n, most)
	}
	after, err := base64.URLEncoding.DecodeString(c.query.Get("pageToken"))
	if err != nil {
		return nil, badRequest("Invalid page token")
	}
	prefix, delimiter := c.query.Get("prefix"), c.query.Get("delimiter")
	var (
		items    []any
		prefixes []any
		last     = string(after)
	)
	body := map[string]any{"kind": "storage#objects"}
	for _, name := range b.from(prefix, string(after)) {
		out := name
		if i := strings.Index(name[len(prefix):], delimiter); delimiter != "" && i >= 0 {
			out = name[:len(prefix)+i+len(delimiter)]
		}
		if out <= last && last != "" {
			continue // the page before had it
		}
		if len(items)+len(prefixes) == size {
			body["nextPageToken"] = base64.URLEncoding.EncodeToString([]byte(last))
			break
		}
		if last = out; out != name || delimiter != "" && strings.HasSuffix(name[len(prefix):], delimiter) {
			prefixes = append(prefixes, out)
			continue
		}
		items = append(items, resource(c.bucket, name, b.objects[name]))
	}
	if items != nil {
		body["items"] = items
	}
	if prefixes != nil {
		body["prefixes"] = prefixes
	}
	return body, nil
}

// resource is the metadata of an object.
func resource(bucket, name string, o *object) map[string]any {
	generation := strconv.FormatInt(o.generation, 10)
	self := "https://www.googleapis.com/storage/v1/b/" + bucket + "/o/" + url.PathEscape(name)
	updated := o.updated.Format("2006-01-02T15:04:05.000Z")
	m := map[string]any{
		"kind": "storage#object", "id": bucket + "/" + name + "/" + generation, "selfLink": self,
		"mediaLink": strings.Replace(self, "/storage/", "/download/storage/", 1) + "?generation=" + generation + "&alt=media",
		"name":      name, "bucket": bucket, "generation": generation, "metageneration": "1",
		"contentType": o.contentType, "storageClass": "STANDARD", "size": strconv.Itoa(len(o.content)),
		"md5Hash": o.md5, "crc32c": o.crc32c, "etag": etag(o),
		"timeCreated": updated, "updated": updated, "timeStorageClassUpdated": updated, "timeFinalized": updated,
	}
	if o.cacheControl != "" {
		m["cacheControl"] = o.cacheControl
	}
	return m
}

func md5Of(content []byte) string {
	sum := md5.Sum(content) //nolint:gosec // the API's checksum
	return base64.StdEncoding.EncodeToString(sum[:])
}

func crcOf(content []byte) string {
	sum := crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

func etag(o *object) string {
	return base64.StdEncoding.EncodeToString(binary.AppendUvarint([]byte{8}, uint64(o.generation))) //nolint:gosec // positive
}

// upload is the content of an insert.
type upload struct {
	name, contentType, cacheControl string
	content                         []byte
}

// readUpload reads the two forms that carry an object in one request: media alone, or its metadata and media.
func readUpload(r *http.Request, c call) (upload, error) {
	switch t := c.query.Get("uploadType"); t {
	case "media":
		content, err := io.ReadAll(r.Body)
		if err != nil {
			return upload{}, badRequest("body: %v", err)
		}
		return named(upload{name: c.query.Get("name"), contentType: r.Header.Get("Content-Type"), content: content})
	case "multipart":
		return readMultipart(r, c)
	default:
		return upload{}, notSimulated("uploadType " + t)
	}
}

func readMultipart(r *http.Request, c call) (upload, error) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "multipart/related" {
		return upload{}, badRequest("Content-Type %q is not multipart/related", r.Header.Get("Content-Type"))
	}
	parts := multipart.NewReader(r.Body, params["boundary"])
	meta, err := parts.NextPart()
	if err != nil {
		return upload{}, badRequest("metadata part: %v", err)
	}
	var resource struct {
		Name         string `json:"name"`
		ContentType  string `json:"contentType"`
		CacheControl string `json:"cacheControl"`
	}
	if err := json.UnmarshalRead(meta, &resource); err != nil {
		return upload{}, badRequest("metadata part: %v", err)
	}
	media, err := parts.NextPart()
	if err != nil {
		return upload{}, badRequest("media part: %v", err)
	}
	content, err := io.ReadAll(media)
	if err != nil {
		return upload{}, badRequest("media part: %v", err)
	}
	return named(upload{
		name: cmp.Or(c.query.Get("name"), resource.Name), content: content, cacheControl: resource.CacheControl,
		contentType: cmp.Or(resource.ContentType, media.Header.Get("Content-Type"), "application/octet-stream"),
	})
}

// named refuses the names that the real storage refuses.
// Names: https://cloud.google.com/storage/docs/objects#naming
func named(u upload) (upload, error) {
	if u.name == "" {
		return u, fail{status: http.StatusBadRequest, reason: "required", message: "Required"}
	}
	if len(u.name) > 1024 || u.name == "." || u.name == ".." || strings.ContainsAny(u.name, "\r\n") {
		return u, badRequest("Invalid object name %q", u.name)
	}
	return u, nil
}
