package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"aiv/store"
)

// message returns the body that is sent for an event.
func message(eventType string, createdAt time.Time, data []byte) []byte {
	body := make([]byte, 0, len(data)+128)
	body = append(body, `{"type":"`...)
	body = append(body, eventType...)
	body = append(body, `","timestamp":`...)
	timestamp, err := json.Marshal(createdAt.UTC())
	if err != nil {
		panic(err) // only of years beyond 9999
	}
	body = append(body, timestamp...)
	body = append(body, `,"data":`...)
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
