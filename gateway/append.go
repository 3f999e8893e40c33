package gateway

import (
	"strconv"
	"time"

	"aiv/runs"
	"aiv/store"
	"aiv/store/strictjson"
)

// The functions below append JSON without reflection. They encode the items of pages, where encoding/json takes most of the
// time of a request. TestAppend compares each with encoding/json on its wire type.

// appendStrings appends an array, or null for a nil slice.
func appendStrings(b []byte, list []string) []byte {
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(b, s)
	}
	return append(b, ']')
}

func appendID(b []byte, prefix string, id store.ID) []byte {
	b = append(b, '"')
	b = id.AppendText(b, prefix)
	return append(b, '"')
}

func appendTime(b []byte, t time.Time) []byte {
	return append(store.AppendTime(append(b, '"'), t), '"')
}

func appendTimeOrNull(b []byte, t *time.Time) []byte {
	if t == nil {
		return append(b, "null"...)
	}
	return appendTime(b, *t)
}

// member appends the name of a member of an object, with the comma before it and the colon after it.
func member(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, `":`...)
}

func appendInt(b []byte, name string, n int) []byte {
	return strconv.AppendInt(member(b, name), int64(n), 10)
}

func appendText(b []byte, name, s string) []byte { return strictjson.AppendString(member(b, name), s) }

// appendRun appends a runDocument.
func appendRun(b []byte, r *runs.Run) []byte {
	b = append(b, '{')
	b = appendID(member(b, "id"), "run", r.ID)
	b = appendText(b, "status", r.Status)
	b = appendText(b, "measurement_type", r.MeasurementType)
	b = appendText(b, "methodology_version", r.MethodologyVersion)
	b = appendStrings(member(b, "model_ids"), r.ModelIDs)
	b = appendStrings(member(b, "question_ids"), r.QuestionIDs)
	b = appendInt(b, "repetitions", r.Repetitions)
	b = appendText(b, "locale", r.Locale)
	b = appendText(b, "country", r.Country)
	b = appendText(b, "language", r.Language)
	b = appendInt(b, "total_jobs", r.TotalJobs)
	b = append(member(b, "jobs"), '{')
	b = appendInt(b, "queued", r.Queued())
	b = appendInt(b, "running", r.Running)
	b = appendInt(b, "completed", r.Completed)
	b = appendInt(b, "failed", r.Failed)
	b = appendInt(b, "canceled", r.Canceled)
	b = append(b, '}')
	b = appendTime(member(b, "created_at"), r.CreatedAt)
	b = appendTimeOrNull(member(b, "started_at"), r.StartedAt)
	b = appendTimeOrNull(member(b, "finished_at"), r.FinishedAt)
	return append(b, '}')
}
