package wire

import (
	"bytes"
	"encoding/json"
)

// Encode returns v as encoding/json encodes it, but with < and & as they are. It panics if v cannot be encoded; wire
// types can.
func Encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return b.Bytes()[:b.Len()-1] // without the line feed
}
