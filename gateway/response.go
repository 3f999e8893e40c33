package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
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

// write sends a body whose length is known.
func (x *exchange) write(status int, mediaType string, body []byte) {
	x.set("Content-Type", mediaType)
	if x.Header()["Cache-Control"] == nil {
		x.set("Cache-Control", "no-store")
	}
	if len(body) > buffered {
		// net/http itself tells the length of what it can hold until the handler ends.
		x.set("Content-Length", strconv.Itoa(len(body)))
		http.NewResponseController(x.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
	}
	x.WriteHeader(status)
	x.Write(body) // a client that has gone can't be told
}

// buffered is how much of a body net/http holds back while the handler runs.
const buffered = 2048

// header sets a header whose name is written in its canonical form.
func header(w http.ResponseWriter, name, value string) { w.Header()[name] = []string{value} }
