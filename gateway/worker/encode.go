package worker

import (
	"time"

	"aiv/store"
	"aiv/store/strictjson"
)

// appendMember appends a string member. before is the text up to the value, such as `,"id":`.
func appendMember(b []byte, before, text string) []byte {
	return strictjson.AppendString(append(b, before...), text)
}

func appendStringOrNull(b []byte, s *string) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	return strictjson.AppendString(b, *s)
}

func appendTime(b []byte, t time.Time) []byte {
	return append(store.AppendTime(append(b, '"'), t), '"')
}
