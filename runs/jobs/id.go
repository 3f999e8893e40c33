package jobs

import (
	"cmp"
	"encoding/base32"
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
	idLength = len(idPrefix) + (idBytes*8+4)/5
)

var idDigits = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding) // the digits of TypeIDs

var errNotAnID = errors.New("not the id of a job")

// String returns the job's id.
func (k Key) String() string { return string(k.AppendID(make([]byte, 0, idLength))) }

// AppendID appends the job's id. Ids of one run sort by ordinal.
func (k Key) AppendID(b []byte) []byte {
	var raw [idBytes]byte
	copy(raw[:], k.Account[:])
	copy(raw[16:], k.Run[:])
	binary.BigEndian.PutUint32(raw[32:], uint32(k.Ordinal))
	return idDigits.AppendEncode(append(b, idPrefix...), raw[:])
}

// ParseID parses a job's id. It accepts only the spelling that String returns.
func ParseID(text string) (Key, error) {
	digits, ok := strings.CutPrefix(text, idPrefix)
	if !ok || len(text) != idLength {
		return Key{}, errNotAnID
	}
	raw, err := idDigits.AppendDecode(make([]byte, 0, idBytes+4), []byte(digits))
	if err != nil || len(raw) != idBytes { // line feeds are skipped
		return Key{}, errNotAnID
	}
	k := Key{Account: store.ID(raw[:16]), Run: store.ID(raw[16:32]), Ordinal: int32(binary.BigEndian.Uint32(raw[32:]))}
	if k.Ordinal < 1 || string(k.AppendID(make([]byte, 0, idLength))) != text { // the last digit has unused bits
		return Key{}, errNotAnID
	}
	return k, nil
}

// A runKey identifies a run.
type runKey struct{ account, run store.ID }

func compareRuns(a, b runKey) int {
	return cmp.Or(a.account.Compare(b.account), a.run.Compare(b.run))
}

// splitKeys returns keys as two columns for unnest.
func splitKeys(keys []runKey) (accounts, runs []store.ID) {
	for _, k := range keys {
		accounts, runs = append(accounts, k.account), append(runs, k.run)
	}
	return accounts, runs
}
