package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"aiv/store"
)

// A cursor is the sort key of the last item of a page: a version, the key, and an HMAC over both and over the route,
// the account and the filters. Clients can neither make a cursor nor use it elsewhere, so the key needs no further
// checks.
const (
	cursorVersion = 1      // the first byte; another format gets another number
	sealLength    = 16     // bytes of the HMAC that are kept
	timeAndID     = 8 + 16 // bytes: microseconds of Unix time, big-endian, and an id
	maxCursor     = 512    // characters; seal never returns as many
)

// seal returns the cursor of a position. bound is what the cursor may be used with; see exchange.bound.
func (g *Gateway) seal(bound string, p store.Position, byText bool) string {
	// The version is sealed too.
	b := []byte{cursorVersion}
	if byText {
		b = append(b, p.Text...)
	} else {
		b = binary.BigEndian.AppendUint64(b, uint64(p.Time.UnixMicro()))
		b = append(b, p.ID[:]...)
	}
	return base64.RawURLEncoding.EncodeToString(append(b, g.sealOf(bound, b)...))
}

// open returns the position of a cursor. It reports false unless the cursor was made by seal for the same list.
func (g *Gateway) open(bound, cursor string, byText bool) (*store.Position, bool) {
	if len(cursor) > maxCursor {
		return nil, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) < 1+sealLength || b[0] != cursorVersion ||
		base64.RawURLEncoding.EncodeToString(b) != cursor { // the decoder skips line breaks
		return nil, false
	}
	b, seal := b[:len(b)-sealLength], b[len(b)-sealLength:]
	if !hmac.Equal(seal, g.sealOf(bound, b)) {
		return nil, false
	}
	// The seal is authentic, so the key has the form that seal has written.
	if b = b[1:]; byText {
		return &store.Position{Text: string(b)}, true
	}
	if len(b) != timeAndID {
		return nil, false
	}
	return &store.Position{Time: time.UnixMicro(int64(binary.BigEndian.Uint64(b))), ID: store.ID(b[8:])}, true
}

// sealOf returns the HMAC of a cursor. The length of bound precedes it, so that no other bound and b have the same
// bytes together.
func (g *Gateway) sealOf(bound string, b []byte) []byte {
	mac := hmac.New(sha256.New, g.cfg.CursorSecret)
	mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(bound))))
	mac.Write([]byte(bound))
	mac.Write(b)
	return mac.Sum(nil)[:sealLength]
}
