package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/store"
)

// TestDelivery: an event reaches an endpoint in the documented form, signed, and the delivery reports it.
func TestDelivery(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.account(t)
	type received struct {
		header http.Header
		body   []byte
	}
	got := make(chan received, 10)
	r := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- received{r.Header, body}
	})
	e, secret, err := f.Create(t.Context(), account, r.URL+"/hook", "", []string{RunCompleted})
	if err != nil {
		t.Fatal(err)
	}
	f.dispatch(t, nil)
	id := f.record(t, account, 1)[0]
	request := <-got

	event, err := f.Event(t.Context(), account, id)
	if err != nil {
		t.Fatal(err)
	}
	body := decode(t, request.body)
	want := map[string]any{"type": RunCompleted, "timestamp": event.CreatedAt.UTC().Format(time.RFC3339Nano), "data": decode(t, event.Data)}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	if got := request.header.Get("webhook-id"); got != id.Text("evt") {
		t.Errorf("webhook-id %s, want %s", got, id.Text("evt"))
	}
	if got := request.header.Get("User-Agent"); got != "aiv-webhooks/1" {
		t.Errorf("User-Agent %s", got)
	}
	if got := request.header.Values("Idempotency-Key"); got != nil {
		t.Errorf("Idempotency-Key %q was sent", got)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) != 32 {
		t.Fatalf("secret %s: %v", secret, err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(request.header.Get("webhook-id") + "." + request.header.Get("webhook-timestamp") + "." + string(request.body)))
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); request.header.Get("webhook-signature") != want {
		t.Errorf("webhook-signature %s, want %s", request.header.Get("webhook-signature"), want)
	}

	d := f.deliveryWhen(t, account, e.ID, "delivered")
	wantDelivery := Delivery{EventID: id, Type: RunCompleted, Status: "delivered", Attempts: 1, LastStatus: new(200),
		CreatedAt: event.CreatedAt, DeliveredAt: d.DeliveredAt}
	if diff := cmp.Diff(wantDelivery, d, utc); diff != "" || d.DeliveredAt == nil {
		t.Errorf("delivery (-want +got):\n%s", diff)
	}
}

var utc = cmp.Transformer("UTC", time.Time.UTC)

// deliveryWhen waits until the endpoint's only delivery has a status and was attempted, and returns it.
func (f *fixture) deliveryWhen(t testing.TB, account, endpoint store.ID, status string) (d Delivery) {
	t.Helper()
	eventually(t, "the delivery is "+status, func() bool {
		all, err := f.Deliveries(t.Context(), account, endpoint, status, store.Page{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 1 && all[0].Attempts > 0 {
			d = all[0]
			return true
		}
		return false
	})
	return d
}
