package jobs

import (
	"context"
	"encoding/binary"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
)

// minCopy is the number of results from which COPY is used. It costs one more round trip but less per row: for each large INSERT,
// pgx allocates two large buffers that it does not reuse. pgx's own CopyFrom, which looks up an encoding for each value, takes about
// 4 µs of processor time more for each job, and twice the allocations. On Citus, results are always inserted.
const minCopy = 16

const copiedColumns = 10

func copyResults(ctx context.Context, conn *pgx.Conn, l *ledger) error {
	_, err := conn.PgConn().CopyFrom(ctx, &copyReader{results: l.results, now: l.now, buf: []byte(copyHeader)}, copyResultsSQL)
	return err
}

// A copyReader returns results in the binary format of COPY: a header, and for each row the number of columns and for each column
// its length and value in network byte order [PostgreSQL, COPY, Binary Format].
type copyReader struct {
	results []*result // not encoded yet
	now     time.Time
	buf     []byte // an encoded part
	read    int    // bytes of buf already returned
	ended   bool
}

const (
	copyHeader  = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" // no flags, no extension
	copyTrailer = "\xff\xff"
)

func (r *copyReader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if r.read == len(r.buf) {
			if r.ended {
				break
			}
			r.encodeNext()
		}
		k := copy(p[n:], r.buf[r.read:])
		n, r.read = n+k, r.read+k
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *copyReader) encodeNext() {
	r.buf, r.read = r.buf[:0], 0
	if len(r.results) == 0 {
		r.buf, r.ended = append(r.buf, copyTrailer...), true
		return
	}
	r.buf = r.results[0].appendCopied(r.buf, r.now)
	r.results = r.results[1:]
}

func (r *result) appendCopied(b []byte, now time.Time) []byte {
	b = binary.BigEndian.AppendUint16(b, copiedColumns)
	b = append(appendLength(b, len(r.key.Account)), r.key.Account[:]...)
	b = append(appendLength(b, len(r.key.Run)), r.key.Run[:]...)
	b = binary.BigEndian.AppendUint32(appendLength(b, 4), uint32(r.key.Ordinal))
	b = binary.BigEndian.AppendUint16(appendLength(b, 2), uint16(r.attempts))
	b = appendLength(b, 1)
	if r.settled {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = appendTimestamp(b, r.startedAt)
	b = appendTimestamp(b, now)
	for _, text := range []*string{r.answer, r.code, r.message} {
		if text == nil {
			b = appendLength(b, -1) // NULL
		} else {
			b = append(appendLength(b, len(*text)), *text...)
		}
	}
	return b
}

func appendLength(b []byte, n int) []byte { return binary.BigEndian.AppendUint32(b, uint32(int32(n))) }

// epoch is the zero of PostgreSQL's timestamps, which count microseconds.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func appendTimestamp(b []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(appendLength(b, 8), uint64(t.UnixMicro()-epoch.UnixMicro()))
}
