package webhooks

import (
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxSkew is how far the time of an attempt may be from the receiver's clock.
const maxSkew = 5 * time.Minute

// The reasons for which a receiver rejects a delivery.
var (
	ErrSecret    = errors.New("a secret is whsec_ and the Base64 form of 32 bytes")
	ErrTimestamp = errors.New("webhook-timestamp is missing, or more than five minutes away")
	ErrSignature = errors.New("no signature in webhook-signature is valid")
)

// A Receiver verifies deliveries as the customer's side of Standard Webhooks.
type Receiver struct{ key []byte }

// NewReceiver returns a receiver of the deliveries that are signed with a secret, or ErrSecret.
func NewReceiver(secret string) (*Receiver, error) {
	encoded, ok := strings.CutPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) != 32 {
		return nil, ErrSecret
	}
	return &Receiver{key}, nil
}

// Verify returns ErrTimestamp or ErrSignature unless the header has a valid signature of the body, made at about now.
func (r *Receiver) Verify(h http.Header, body []byte, now time.Time) error {
	timestamp := h.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > maxSkew {
		return ErrTimestamp
	}
	want := []byte(sign(r.key, h.Get("webhook-id"), timestamp, body))
	for signature := range strings.FieldsSeq(h.Get("webhook-signature")) {
		if hmac.Equal([]byte(signature), want) {
			return nil
		}
	}
	return ErrSignature
}
