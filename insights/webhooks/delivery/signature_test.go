package delivery

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http"
	"testing"
	"time"

	"aiv/insights/events"
	"aiv/store"
)

// TestSignatureVector is the published example of Standard Webhooks.
func TestSignatureVector(t *testing.T) {
	t.Parallel()
	key, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	must(t, err)
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	equal(t, want, sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)))
}

func TestSignatureHeaders(t *testing.T) {
	t.Parallel()
	id, body := store.NewID(), []byte(`{}`)
	h := headers(id, time.Unix(1614265330, 999), body, []byte("new"), []byte("old"))
	want := sign([]byte("new"), id.Text("evt"), "1614265330", body) + " " + sign([]byte("old"), id.Text("evt"), "1614265330", body)
	equal(t, want, h.Get("webhook-signature"))
	at := time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.FixedZone("", 3600))
	equal(t, `{"type":"a.b","timestamp":"2026-01-02T02:04:05.600000Z","data":{"x":1}}`,
		string(message("a.b", at, []byte(`{"x":1}`))))
}

func TestReceiverVerifiesSignatures(t *testing.T) {
	event, at := store.NewID(), time.Now()
	body := message(events.WebhookTest, at, []byte(`{"webhook_id":"wh_1"}`))
	signed := headers(event, at, body, testKey(2), testKey(1))
	without := func(name string) http.Header {
		h := signed.Clone()
		h.Del(name)
		return h
	}
	for _, test := range []struct {
		name    string
		version int
		header  http.Header
		body    string
		now     time.Time
		want    error
	}{
		{"the new secret", 2, signed, string(body), at, nil},
		{"the previous secret", 1, signed, string(body), at.Add(4 * time.Minute), nil},
		{"an older secret", 3, signed, string(body), at, ErrSignature},
		{"another body", 2, signed, string(body) + " ", at, ErrSignature},
		{"without an id", 2, without("Webhook-Id"), string(body), at, ErrSignature},
		{"without a signature", 2, without("Webhook-Signature"), string(body), at, ErrSignature},
		{"without a timestamp", 2, without("Webhook-Timestamp"), string(body), at, ErrTimestamp},
		{"an old attempt", 2, signed, string(body), at.Add(6 * time.Minute), ErrTimestamp},
		{"an attempt in the future", 2, signed, string(body), at.Add(-6 * time.Minute), ErrTimestamp},
	} {
		r, err := NewReceiver(secretOf(testKey(test.version)))
		must(t, err)
		if got := r.Verify(test.header, []byte(test.body), test.now); !errors.Is(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	for _, secret := range []string{"", "whsec_", "whsec_AAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "whsec_!!!"} {
		if _, err := NewReceiver(secret); !errors.Is(err, ErrSecret) {
			t.Errorf("the secret %q: %v, want %v", secret, err, ErrSecret)
		}
	}
}

// testKey returns the key of a version of a secret.
func testKey(version int) []byte { return bytes.Repeat([]byte{byte(version)}, 32) }

// secretOf returns the form in which a customer is given a key.
func secretOf(key []byte) string { return "whsec_" + base64.StdEncoding.EncodeToString(key) }
