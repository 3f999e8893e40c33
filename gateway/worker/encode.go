package worker

import (
	"time"

	"aiv/store"
	"aiv/store/strictjson"
)

func appendStringOrNull(b []byte, s *string) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	return strictjson.AppendString(b, *s)
}

func appendTime(b []byte, t time.Time) []byte {
	return append(store.AppendTime(append(b, '"'), t), '"')
}
