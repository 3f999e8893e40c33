package delivery

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"aiv/store"
)

// message returns the body that is sent for an event.
func message(eventType string, createdAt time.Time, data []byte) []byte {
	body := make([]byte, 0, len(data)+128)
	body = append(body, `{"type":"`...)
	body = append(body, eventType...)
	body = append(body, `","timestamp":"`...)
	body = store.AppendTime(body, createdAt)
	body = append(body, `","data":`...)
	body = append(body, data...)
	return append(body, '}')
}

// headers returns the header fields of an attempt at a time, signed with each of the keys.
func headers(event store.ID, at time.Time, body []byte, keys ...[]byte) http.Header {
	id, seconds := event.Text("evt"), strconv.FormatInt(at.Unix(), 10)
	signatures := ""
	for i, key := range keys {
		if i > 0 {
			signatures += " "
		}
		signatures += sign(key, id, seconds, body)
	}
	return http.Header{
		"Content-Type":      {"application/json"},
		"User-Agent":        {"aiv-webhooks/1"},
		"Webhook-Id":        {id},
		"Webhook-Timestamp": {seconds},
		"Webhook-Signature": {signatures},
	}
}

// sign returns a signature in the form of Standard Webhooks.
func sign(key []byte, id, seconds string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + seconds + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// maxSkew bounds the difference between the time of an attempt and the receiver's clock.
const maxSkew = 5 * time.Minute

// The reasons why a receiver rejects a delivery.
var (
	ErrSecret    = errors.New("the secret must be whsec_ and the Base64 form of 32 bytes")
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
