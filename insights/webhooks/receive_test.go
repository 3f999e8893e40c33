package webhooks

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"aiv/store"
)

func TestReceiver(t *testing.T) {
	m := &Master{[]byte(strings.Repeat("m", minMaster))}
	endpoint, event, at := store.NewID(), store.NewID(), time.Now()
	body := message(Test, at, []byte(`{"webhook_id":"wh_1"}`))
	signed := headers(event, at, body, m.Key(endpoint, 2), m.Key(endpoint, 1))
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
		r, err := NewReceiver(m.secret(endpoint, test.version))
		if err != nil {
			t.Fatal(err)
		}
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
