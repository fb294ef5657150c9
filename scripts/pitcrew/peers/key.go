package peers

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
)

// Key is the secret that the crews of a slice share: they believe only messages that are signed with it.
type Key []byte

// keyBytes is the length of a key that a crew makes.
const keyBytes = 32

// The domains of signatures: a signature for one kind of message never fits another.
const (
	questionDomain  = "pitcrew question 1"
	answerDomain    = "pitcrew answer 1"
	challengeDomain = "pitcrew challenge 1"
)

// NewKey makes a random key.
func NewKey() Key {
	k := make(Key, keyBytes)
	_, _ = rand.Read(k) // it never fails
	return k
}

// sign returns the signature of parts. Each part is preceded by its length, so that no two lists of parts read the
// same.
func (k Key) sign(domain string, parts ...[]byte) string {
	m := hmac.New(sha256.New, k)
	for _, p := range append([][]byte{[]byte(domain)}, parts...) {
		_, _ = m.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p)))) // a hash takes everything
		_, _ = m.Write(p)
	}
	return hex.EncodeToString(m.Sum(nil))
}

// signed reports whether a signature is that of the parts. Without a key nothing is signed.
func (k Key) signed(signature, domain string, parts ...[]byte) bool {
	return len(k) > 0 && hmac.Equal([]byte(signature), []byte(k.sign(domain, parts...)))
}

// keyObject is the content of the key's object.
type keyObject struct {
	Schema int `json:"schema"`
	Key    Key `json:"key"`
}

// Key is the key beside the checkpoints. Where there is none it makes one; of several crews at once the first wins, and
// all others read its key.
func (b Board) Key(ctx context.Context) (Key, error) {
	k, err := b.ReadKey(ctx)
	if !errors.Is(err, checkpoint.ErrNotExist) {
		return k, err
	}
	if err := b.create(ctx, b.keyURI(), keyObject{Schema: events.Schema, Key: NewKey()}); err != nil {
		return nil, err
	}
	return b.ReadKey(ctx)
}

// ReadKey is Key for one who makes none: where there is none the error is checkpoint.ErrNotExist.
func (b Board) ReadKey(ctx context.Context) (Key, error) {
	uri := b.keyURI()
	o, err := b.Store.Get(ctx, uri)
	if errors.Is(err, checkpoint.ErrPermission) {
		return nil, fmt.Errorf("%w: its owner alone may read it: run all crews as that user, or give each --peer-key", err)
	}
	if err != nil {
		return nil, err
	}
	var k keyObject
	switch err := json.Unmarshal(o.Content, &k); {
	case err == nil && k.Schema > events.Schema:
		return nil, fmt.Errorf("%s has schema %d, and this release reads up to %d: upgrade this worker's pitcrew",
			uri, k.Schema, events.Schema)
	case err != nil || k.Schema < 1 || len(k.Key) != keyBytes:
		// The text of the error could hold a part of the key.
		return nil, fmt.Errorf("%s holds no key: delete it, and the crews make another", uri)
	}
	return k.Key, nil
}

func (b Board) keyURI() string {
	return checkpoint.Join(b.Directory, Folder+"/"+checkpoint.CrewKeyName)
}
