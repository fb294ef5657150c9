package ledger

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"gocloud.dev/docstore"
	"gocloud.dev/gcerrors"
)

// The columns of a document.
const (
	colID      = "ID"
	colSchema  = "schema"
	colDue     = "due"
	colExpires = "expires"
	colRank    = "rank"
	colRow     = "row"
	colBody    = "body"
)

// Docstore is a collection of docstore, whose key is the field ID.
func Docstore(c *docstore.Collection) Collection { return documents{c} }

type documents struct{ *docstore.Collection }

// document is a record in docstore's form. It is a map and not a struct, because only a map can leave a column out.
func document(r Record) map[string]any {
	d := map[string]any{colID: r.ID, colSchema: int64(r.Schema), colBody: r.Body}
	for name, t := range map[string]time.Time{colDue: r.Due, colExpires: r.Expires} {
		if !t.IsZero() {
			d[name] = t
		}
	}
	for name, text := range map[string]string{colRank: r.Rank, colRow: r.Row} {
		if text != "" {
			d[name] = text
		}
	}
	d[docstore.DefaultRevisionField] = r.Revision.of // without the field docstore does not return the new revision
	return d
}

// recordOf reads a document; a field that is missing or of another type stays zero.
func recordOf(d map[string]any) Record {
	r := Record{Revision: Revision{d[docstore.DefaultRevisionField]}}
	r.ID, _ = d[colID].(string)
	r.Body, _ = d[colBody].(string)
	r.Rank, _ = d[colRank].(string)
	r.Row, _ = d[colRow].(string)
	r.Due, _ = d[colDue].(time.Time)
	r.Expires, _ = d[colExpires].(time.Time)
	schema, _ := d[colSchema].(int64)
	r.Schema = int(schema)
	return r
}

// Get and the methods below implement Collection.
func (c documents) Get(ctx context.Context, key string) (Record, error) {
	d := map[string]any{colID: key, docstore.DefaultRevisionField: nil}
	if err := c.Collection.Get(ctx, d); err != nil {
		return Record{}, missing(err)
	}
	return recordOf(d), nil
}

// missing is an error of docstore, or ErrNotFound if it says that.
func missing(err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return ErrNotFound
	}
	return err
}

func (c documents) Put(ctx context.Context, r *Record) error {
	d := document(*r)
	write, conflicts := c.Replace, []gcerrors.ErrorCode{gcerrors.FailedPrecondition, gcerrors.NotFound}
	if r.Revision.of == nil {
		write, conflicts = c.Create, []gcerrors.ErrorCode{gcerrors.AlreadyExists}
	}
	if err := write(ctx, d); slices.Contains(conflicts, gcerrors.Code(err)) {
		return ErrConflict
	} else if err != nil {
		return err
	}
	r.Revision = Revision{d[docstore.DefaultRevisionField]}
	return nil
}

func (c documents) Update(ctx context.Context, r *Record) error {
	mods := docstore.Mods{}
	if r.Schema != 0 {
		mods[colSchema] = int64(r.Schema)
	}
	if r.Body != "" {
		mods[colBody] = r.Body
	}
	for name, t := range map[docstore.FieldPath]time.Time{colDue: r.Due, colExpires: r.Expires} {
		if !t.IsZero() {
			mods[name] = t
		}
	}
	return missing(c.Collection.Update(ctx, map[string]any{colID: r.ID}, mods))
}

func (c documents) Query(ctx context.Context, q Query) (found []Record, err error) {
	asked := c.Collection.Query()
	if !q.Due.IsZero() {
		asked = asked.Where(colDue, "<=", q.Due)
	}
	if q.Prefix != "" {
		asked = asked.Where(colID, ">=", q.Prefix).Where(colID, "<", after(q.Prefix))
	}
	if r := q.Ranks; r != nil {
		order := docstore.Ascending
		if r.Last {
			order = docstore.Descending
		}
		asked = asked.Where(colRank, ">", r.After).OrderBy(colRank, order).Limit(r.Limit)
		if r.Before != "" {
			asked = asked.Where(colRank, "<", r.Before)
		}
	}
	var fields []docstore.FieldPath
	switch {
	case q.Keys:
		fields = []docstore.FieldPath{colID}
	case q.Rows:
		fields = []docstore.FieldPath{colID, colRank, colRow}
	}
	it := asked.Get(ctx, fields...)
	defer it.Stop()
	for {
		d := map[string]any{docstore.DefaultRevisionField: nil} // Firestore returns the revision only if the field is there
		switch err := it.Next(ctx, d); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, err
		}
		found = append(found, recordOf(d))
	}
}

// after is the first text that sorts after all those that begin with a prefix of plain characters.
func after(prefix string) string {
	last := len(prefix) - 1
	return prefix[:last] + string(prefix[last]+1)
}
