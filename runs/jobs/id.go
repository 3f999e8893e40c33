package jobs

import (
	"encoding/binary"
	"errors"
	"strings"

	"aiv/store"
)

// A Key identifies a job: its run and its position there, from 1, in the run's order by model, question and repetition.
type Key struct {
	Account, Run store.ID
	Ordinal      int32
}

// An id is job_ and the base32 digits of account, run and ordinal, 36 bytes, most significant first.
const (
	idPrefix = "job_"
	idBytes  = 36
	idDigits = (idBytes*8 + 4) / 5
	alphabet = "0123456789abcdefghjkmnpqrstvwxyz" // of TypeIDs
)

var errNotAnID = errors.New("not the id of a job")

// String returns the job's id.
func (k Key) String() string {
	return string(k.AppendID(make([]byte, 0, len(idPrefix)+idDigits)))
}

// AppendID appends the job's id.
func (k Key) AppendID(b []byte) []byte {
	var raw [idBytes + 5]byte // and padding, so that the last digits read zeros
	copy(raw[:], k.Account[:])
	copy(raw[16:], k.Run[:])
	binary.BigEndian.PutUint32(raw[32:], uint32(k.Ordinal))
	b = append(b, idPrefix...)
	for i := 0; i < idBytes; i += 5 {
		group := uint64(binary.BigEndian.Uint32(raw[i:]))<<8 | uint64(raw[i+4])
		for shift := 35; shift >= 0; shift -= 5 {
			b = append(b, alphabet[group>>shift&31])
		}
	}
	return b[:len(b)-(idBytes+4)/5*8+idDigits]
}

// ParseID parses a job's id. It accepts only the spelling that String returns.
func ParseID(text string) (Key, error) {
	digits, ok := strings.CutPrefix(text, idPrefix)
	if !ok || len(digits) != idDigits {
		return Key{}, errNotAnID
	}
	var raw [idBytes + 5]byte
	var bits uint64
	n, at := 0, 0
	for i := range len(digits) {
		v := strings.IndexByte(alphabet, digits[i])
		if v < 0 {
			return Key{}, errNotAnID
		}
		bits, n = bits<<5|uint64(v), n+5
		if n >= 8 {
			n -= 8
			raw[at] = byte(bits >> n)
			at++
		}
	}
	if bits&(1<<n-1) != 0 { // padding
		return Key{}, errNotAnID
	}
	k := Key{Account: store.ID(raw[:16]), Run: store.ID(raw[16:32]), Ordinal: int32(binary.BigEndian.Uint32(raw[32:]))}
	if k.Ordinal < 1 {
		return Key{}, errNotAnID
	}
	return k, nil
}

// A runKey identifies a run.
type runKey struct{ account, run store.ID }

func compareRuns(a, b runKey) int {
	if c := a.account.Compare(b.account); c != 0 {
		return c
	}
	return a.run.Compare(b.run)
}

func splitKeys(keys []runKey) (accounts, runs []store.ID) {
	for _, k := range keys {
		accounts, runs = append(accounts, k.account), append(runs, k.run)
	}
	return accounts, runs
}
