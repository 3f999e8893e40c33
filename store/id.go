package store

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// ID is the identifier of a record: a UUIDv7 [RFC 9562], so that ids made later sort later. PostgreSQL stores it as
// uuid; clients and operators see it as a TypeID, which is its type's prefix and 26 base32 characters: run_01k3….
//
// [RFC 9562]: https://www.rfc-editor.org/rfc/rfc9562#section-5.7
type ID [16]byte

// NewID returns a new ID that contains the current time in milliseconds.
func NewID() ID {
	var id ID
	// Read never returns an error.
	rand.Read(id[6:])
	ms := uint64(time.Now().UnixMilli())
	// The first 48 bits are the time.
	binary.BigEndian.PutUint32(id[:4], uint32(ms>>16))
	binary.BigEndian.PutUint16(id[4:6], uint16(ms))
	id[6] = id[6]&0x0f | 0x70 // version 7
	id[8] = id[8]&0x3f | 0x80 // variant
	return id
}

// base32 is Crockford's alphabet in lower case, as TypeIDs use it.
const base32 = "0123456789abcdefghjkmnpqrstvwxyz"

// suffixLength is the number of base32 characters for 128 bits, of which the first has three.
const suffixLength = 26

// Text returns the TypeID of an id of the given type: "run" gives run_01k3….
func (id ID) Text(prefix string) string {
	return string(id.AppendText(make([]byte, 0, len(prefix)+1+suffixLength), prefix))
}

// AppendText appends the TypeID to b.
func (id ID) AppendText(b []byte, prefix string) []byte {
	b = append(append(b, prefix...), '_')
	hi, lo := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	var suffix [suffixLength]byte
	// Each character has five bits. The last one comes first: the id is shifted right as one number of 128 bits.
	for i := suffixLength - 1; i >= 0; i-- {
		suffix[i] = base32[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return append(b, suffix[:]...)
}

// errNotAnID does not contain the text, which may be long or secret.
var errNotAnID = errors.New("not an id")

// ParseID reads a TypeID of the given type, and accepts only the spelling that Text returns.
func ParseID(prefix, text string) (ID, error) {
	if len(text) != len(prefix)+1+suffixLength || text[:len(prefix)] != prefix || text[len(prefix)] != '_' {
		return ID{}, fmt.Errorf("%w of the form %s_ and %d characters", errNotAnID, prefix, suffixLength)
	}
	suffix := text[len(prefix)+1:]
	if suffix[0] > '7' { // 26 characters have 130 bits, an id has 128
		return ID{}, errNotAnID
	}
	var hi, lo uint64
	for i := range suffixLength {
		v := base32Value[suffix[i]]
		if v > 31 {
			return ID{}, errNotAnID
		}
		hi = hi<<5 | lo>>59
		lo = lo<<5 | uint64(v)
	}
	var id ID
	binary.BigEndian.PutUint64(id[:8], hi)
	binary.BigEndian.PutUint64(id[8:], lo)
	return id, nil
}

// base32Value has the value of each character of base32, and 0xff for others.
var base32Value = func() (values [256]byte) {
	for i := range values {
		values[i] = 0xff
	}
	for i, c := range []byte(base32) {
		values[c] = byte(i)
	}
	return values
}()

// UUID returns the id as PostgreSQL writes it.
func (id ID) UUID() string { return pgtype.UUID{Bytes: id, Valid: true}.String() }

// Compare orders ids as PostgreSQL does.
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// UUIDValue and ScanUUID make pgx read and write an ID as uuid.
func (id ID) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: id, Valid: true}, nil }

// ScanUUID implements pgtype.UUIDScanner. An absent id is read through *ID.
func (id *ID) ScanUUID(v pgtype.UUID) error {
	if !v.Valid {
		return errors.New("cannot read NULL into an ID")
	}
	*id = v.Bytes
	return nil
}
