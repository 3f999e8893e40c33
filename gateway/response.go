package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// encode returns v as JSON in which < and & are not escaped.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // wire types can always be encoded
	}
	return b.Bytes()[:b.Len()-1] // without the line feed
}

// write sends a body.
func (x *exchange) write(status int, mediaType string, body []byte) {
	x.set("Content-Type", mediaType)
	if x.Header()["Cache-Control"] == nil {
		x.set("Cache-Control", "no-store")
	}
	if len(body) > buffered {
		x.set("Content-Length", strconv.Itoa(len(body)))
	}
	x.WriteHeader(status)
	x.Write(body) // an error means that the client has gone
}

// buffered is the length up to which net/http sets Content-Length itself.
const buffered = 2048

// header sets a header whose name is written in its canonical form.
func header(w http.ResponseWriter, name, value string) { w.Header()[name] = []string{value} }
