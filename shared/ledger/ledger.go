// Package ledger keeps Pitstop's knowledge between two events: one document per workload. It also keeps the subjects of log
// entries, entries with a subject still unknown, the brake, the pause, specifications and the archive of closed incidents.
// Every document is read by key and written by compare-and-swap, never blindly, and none is deleted; one query finds the
// workloads with work due, and pages read by rank. Possible secrets are in a second database, and what people were told is in a third; see Secrets and
// Journal.
//
// A document is a few columns and a JSON body. The columns are for the store itself: the key, the schema, the time from
// which work is due (absent if none is), and the time when the document may be forgotten. A workload and an archived incident also
// have a rank, by which pages list them, and an incident has a row, which is what lists show of it.
package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pitstop.internal/events"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/recent"
)

// ErrNotFound says that no document has the key.
var ErrNotFound = errors.New("not in the ledger")

// ErrConflict says that another writer has written the document since it was read, and that this write had no effect.
var ErrConflict = errors.New("written by somebody else meanwhile")

// MaxBody is the largest body that is written; the store accepts a document of 1 MiB.
const MaxBody = 900 << 10

// Names of the collections.
const (
	Workloads = "workloads"
	Subjects  = "subjects"
	Parked    = "parked"
	Brake     = "brake"
	Pauses    = "pause"
	Specs     = "specs"
	Archive   = "archive"
	Canaries  = "canary"
	Stockouts = "stockouts"
	// Deployment holds a deployment's description of itself.
	Deployment = "deployment"
	// Tellings is the collection of the third database; see Journal.
	Tellings = "told"
)

// Ledger is the store. It is safe for concurrent use.
type Ledger struct {
	open  Opener
	conns *connections
	read  recent.Memory[string, reading]
	// saved are the keys of specifications that this process has stored or found stored. No release deletes one.
	saved recent.Memory[string, bool]
}

// New returns a ledger that opens each collection when it is first used.
func New(open Opener) *Ledger { return &Ledger{open: open, conns: newConnections()} }

// reading is a workload with the body of its document. A due workload is read several times a minute and seldom changes in
// between. Readings are shared, so a caller changes only a copy, as incident.Advance does.
type reading struct {
	body     string
	workload incident.Workload
}

// workloadOf decodes a document, unless it is the one read last. Where the store keeps values, the ledger keeps none.
func (l *Ledger) workloadOf(id string, r Record) (incident.Workload, error) {
	if r.Decoded != nil {
		return decode[incident.Workload](Workloads, id, incident.Schema, r)
	}
	if last, ok := l.read.Get(id); ok && last.body == r.Body && r.Schema <= incident.Schema {
		return last.workload, nil
	}
	w, err := decode[incident.Workload](Workloads, id, incident.Schema, r)
	if err != nil {
		return incident.Workload{}, err
	}
	l.read.Put(id, reading{r.Body, w}, len(r.Body))
	return w, nil
}

// Close closes the collections that were opened.
func (l *Ledger) Close() error { return l.conns.close() }

// key makes an ID fit for every store: no slash, not only dots, and no two leading underscores, which Firestore reserves. An
// empty ID has no key, because a store would invent one. https://cloud.google.com/firestore/docs/best-practices#document_ids
func key(id string) (string, error) {
	switch {
	case id == "":
		return "", fault.Permanentf("ledger: a document must have an ID")
	case strings.Trim(id, ".") == "":
		return strings.ReplaceAll(id, ".", "%2E"), nil
	case strings.HasPrefix(id, "__"):
		return "%5F" + url.PathEscape(id[1:]), nil
	}
	return url.PathEscape(id), nil
}

func (l *Ledger) get(ctx context.Context, collection, id string) (Record, error) {
	k, err := key(id)
	if err != nil {
		return Record{}, err
	}
	c, err := l.conns.get(ctx, l.open, collection)
	if err != nil {
		return Record{}, fmt.Errorf("ledger: open %s: %w", collection, err)
	}
	r, err := c.Get(ctx, k)
	switch {
	case err == nil:
		return r, nil
	case errors.Is(err, ErrNotFound):
		return Record{}, fmt.Errorf("ledger: %s %s: %w", collection, id, ErrNotFound)
	default:
		return Record{}, fmt.Errorf("ledger: read %s %s: %w", collection, id, err)
	}
}

// put writes a document if it has not changed since it was read, or if it is still missing.
func (l *Ledger) put(ctx context.Context, collection string, r Record) (Revision, error) {
	if len(r.Body) > MaxBody {
		return Revision{}, fault.Permanentf("ledger: %s %s: %d bytes are more than the limit of %d for a document", collection, r.ID, len(r.Body), MaxBody)
	}
	id := r.ID
	k, err := key(id)
	if err != nil {
		return Revision{}, err
	}
	r.ID, r.Due, r.Expires = k, microseconds(r.Due), microseconds(r.Expires)
	c, err := l.conns.get(ctx, l.open, collection)
	if err != nil {
		return Revision{}, fmt.Errorf("ledger: open %s: %w", collection, err)
	}
	err = c.Put(ctx, &r)
	switch {
	case err == nil:
		return r.Revision, nil
	case status.Code(err) == codes.Aborted:
		// Firestore aborts like this if many writers write one document at once. This write had no effect, and the next reading
		// shows the other writer's.
		return Revision{}, fmt.Errorf("ledger: %s %s: %w: %w", collection, id, ErrConflict, err)
	case errors.Is(err, ErrConflict):
		return Revision{}, fmt.Errorf("ledger: %s %s: %w", collection, id, ErrConflict)
	default:
		return Revision{}, fmt.Errorf("ledger: write %s %s: %w", collection, id, err)
	}
}

// load reads the value of a document and its revision. The value may be shared, so a caller changes only a copy; see Memory.
func load[T any](ctx context.Context, l *Ledger, collection, id string, schema int) (v T, rev Revision, err error) {
	r, err := l.get(ctx, collection, id)
	if err != nil {
		return v, Revision{}, err
	}
	if v, err = decode[T](collection, id, schema, r); err != nil {
		return v, Revision{}, err
	}
	return v, r.Revision, nil
}

// readable checks that this release knows the schema of a document; otherwise a newer release must handle it.
func readable(collection, id string, schema int, r Record) error {
	if r.Schema > schema {
		return fault.Busy(fmt.Errorf("ledger: %s %s has schema %d, this release reads up to %d: %w", collection, id, r.Schema, schema, events.ErrNewer))
	}
	return nil
}

func decode[T any](collection, id string, schema int, r Record) (v T, err error) {
	if err = readable(collection, id, schema, r); err != nil {
		return v, err
	}
	if v, err = Value[T](r); err != nil {
		return v, fmt.Errorf("ledger: %s %s: %w", collection, id, err)
	}
	return v, nil
}

func (l *Ledger) store(ctx context.Context, collection, id string, r Record, v any, rev Revision) (Revision, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return Revision{}, fmt.Errorf("ledger: %s %s: %w", collection, id, err)
	}
	r.ID, r.Body, r.Revision = id, string(body), rev
	return l.put(ctx, collection, r)
}

// Workload reads the document of a workload, or ErrNotFound.
func (l *Ledger) Workload(ctx context.Context, id string) (incident.Workload, Revision, error) {
	r, err := l.get(ctx, Workloads, id)
	if err != nil {
		return incident.Workload{}, Revision{}, err
	}
	w, err := l.workloadOf(id, r)
	return w, r.Revision, err
}

// Save writes the document of a workload if it has not changed since it was read; otherwise it returns ErrConflict.
func (l *Ledger) Save(ctx context.Context, w incident.Workload, rev Revision) (Revision, error) {
	w.Schema = incident.Schema // an older document gets this release's schema
	return l.store(ctx, Workloads, w.ID, Record{Schema: incident.Schema, Due: w.Due(), Rank: w.Rank()}, w, rev)
}

// Due reads the workloads that have work due by now, in the order of their IDs. It returns the readable ones together with
// an error for the others.
func (l *Ledger) Due(ctx context.Context, now time.Time) (due []incident.Workload, err error) {
	found, err := l.query(ctx, Workloads, Query{Due: now.UTC()})
	if err != nil {
		return nil, err
	}
	return l.workloads(found)
}

func (l *Ledger) workloads(found []Record) (all []incident.Workload, err error) {
	var faults []error
	all = slices.Grow(all, len(found))
	for _, r := range found {
		w, err := l.workloadOf(r.ID, r)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		all = append(all, w)
	}
	return all, unread(faults)
}

// UnreadableError names documents that cannot be read. All others come with it.
type UnreadableError struct{ error }

// Unwrap is the error of each document.
func (e UnreadableError) Unwrap() error { return e.error }

// unread is the error of documents that cannot be read; nil for none.
func unread(faults []error) error {
	if len(faults) == 0 {
		return nil
	}
	return UnreadableError{errors.Join(faults...)}
}

// Workloads reads every workload in one listing, in the order of their IDs. It returns the readable ones together with an
// error for the others.
func (l *Ledger) Workloads(ctx context.Context) (all []incident.Workload, err error) {
	found, err := l.query(ctx, Workloads, Query{})
	if err != nil {
		return nil, err
	}
	return l.workloads(found)
}

// All returns the IDs of every workload.
func (l *Ledger) All(ctx context.Context) (ids []string, err error) {
	found, err := l.query(ctx, Workloads, Query{Keys: true})
	for _, r := range found {
		ids = append(ids, r.ID)
	}
	return ids, err
}

// query reads documents in the order of their IDs, because stores differ in their order; those that are asked for by their rank keep that one.
func (l *Ledger) query(ctx context.Context, collection string, q Query) ([]Record, error) {
	c, err := l.conns.get(ctx, l.open, collection)
	if err != nil {
		return nil, fmt.Errorf("ledger: open %s: %w", collection, err)
	}
	found, err := c.Query(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("ledger: query %s: %w", collection, err)
	}
	for i, r := range found {
		if found[i].ID, err = url.PathUnescape(r.ID); err != nil {
			return nil, fmt.Errorf("ledger: key %v: %w", r.ID, err)
		}
	}
	if q.Ranks == nil {
		slices.SortFunc(found, func(a, b Record) int { return strings.Compare(a.ID, b.ID) })
	}
	return found, nil
}

// specSchema is the schema of a specification. It is without the values of its metadata: see Secrets.
const specSchema = 2

// specKey is the key of a specification: the first part of its name. The rest names the values of its metadata; see Secrets.
func specKey(name string) string {
	key, _, _ := strings.Cut(name, "@")
	return key
}

// SaveSpec stores a specification under its name. It is written only once, because the same content has the same name.
func (l *Ledger) SaveSpec(ctx context.Context, name string, spec []byte) error {
	key := specKey(name)
	if saved, _ := l.saved.Get(key); saved {
		return nil
	}
	_, err := l.put(ctx, Specs, Record{ID: key, Schema: specSchema, Body: string(spec)})
	if errors.Is(err, ErrConflict) {
		_, err = l.Spec(ctx, name) // it exists already, or Firestore aborted the write
	}
	if err == nil {
		l.saved.Put(key, true, len(key))
	}
	return err
}

// Spec reads a specification by its name, or ErrNotFound.
func (l *Ledger) Spec(ctx context.Context, name string) ([]byte, error) {
	r, err := l.get(ctx, Specs, specKey(name))
	if err == nil {
		err = readable(Specs, name, specSchema, r)
	}
	if err != nil {
		return nil, err
	}
	return []byte(r.Body), nil
}

// KeepArchive is how long a closed incident stays in the archive: as long as Cloud Logging keeps its entries.
const KeepArchive = 400 * 24 * time.Hour

// SaveClosed archives a closed incident of a workload under its ID. A later cause rewrites it; an earlier one does not.
func (l *Ledger) SaveClosed(ctx context.Context, w incident.Workload, in incident.Incident) error {
	id, past := w.ID+"/"+in.ID, w.Past(in, in.Closed)
	row, err := json.Marshal(past)
	if err != nil {
		return fmt.Errorf("ledger: %s %s: %w", Archive, id, err)
	}
	for range tries {
		old, rev, err := load[incident.Incident](ctx, l, Archive, id, incident.Schema)
		switch {
		case err == nil && old.Revision >= in.Revision:
			return nil
		case err != nil && !errors.Is(err, ErrNotFound):
			return err
		}
		r := Record{Schema: incident.Schema, Expires: in.Closed.Add(KeepArchive), Rank: past.Rank(), Row: string(row)}
		if _, err := l.store(ctx, Archive, id, r, in, rev); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("ledger: %s %s: %w", Archive, id, ErrConflict)
}

// Closed reads a closed incident from the archive, or ErrNotFound.
func (l *Ledger) Closed(ctx context.Context, workload, id string) (incident.Incident, error) {
	in, _, err := load[incident.Incident](ctx, l, Archive, workload+"/"+id, incident.Schema)
	return in, err
}

// Archived returns the IDs of all closed incidents in the archive by the ID of their workload, the latest first. It reads keys
// alone, in one listing.
func (l *Ledger) Archived(ctx context.Context) (map[string][]string, error) {
	found, err := l.query(ctx, Archive, Query{Keys: true})
	if err != nil {
		return nil, err
	}
	ids := map[string][]string{}
	for _, r := range found {
		if i := strings.LastIndexByte(r.ID, '/'); i > 0 {
			ids[r.ID[:i]] = append(ids[r.ID[:i]], r.ID[i+1:])
		}
	}
	for _, of := range ids {
		slices.SortFunc(of, func(a, b string) int { return byOpening(b, a) })
	}
	return ids, nil
}

// byOpening compares the IDs of two incidents of a workload, which end with a day and the number of that day.
func byOpening(a, b string) int {
	dayOfA, a := cutLast(a)
	dayOfB, b := cutLast(b)
	return cmp.Or(cmp.Compare(dayOfA, dayOfB), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// cutLast cuts an ID before its last part.
func cutLast(id string) (before, last string) {
	i := max(0, strings.LastIndexByte(id, '-'))
	return id[:i], id[i:]
}

// Incident reads an incident of a workload: from its document while the incident is there, else from the archive. An
// incident of another workload is ErrNotFound.
func (l *Ledger) Incident(ctx context.Context, w incident.Workload, id string) (incident.Incident, error) {
	for _, in := range []*incident.Incident{w.Incident, w.Closed} {
		if in != nil && in.ID == id {
			return *in, nil
		}
	}
	if !w.MayHave(id) {
		return incident.Incident{}, fmt.Errorf("ledger: incident %s of %s: %w", id, w.ID, ErrNotFound)
	}
	for _, e := range slices.Backward(w.Outbox) {
		if e.Type == events.TypeIncidentClosed && e.Correlation == id { // it waits to be archived
			var in incident.Incident
			if err := json.Unmarshal(e.Data, &in); err != nil {
				return in, fmt.Errorf("ledger: incident %s of %s: %w", id, w.ID, err)
			}
			return in, nil
		}
	}
	return l.Closed(ctx, w.ID, id)
}

// tries is how often a failed compare-and-swap is repeated before the message is left for redelivery.
const tries = 5
