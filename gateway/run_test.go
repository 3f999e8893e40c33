package gateway_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/auth"
	"aiv/gateway"
	"aiv/runs"
	"aiv/runs/answers"
	"aiv/runs/jobs"
	"aiv/runs/results"
	"aiv/store"
)

// oddTexts need escapes, or look as if they did.
var oddTexts = []string{"", "plain", `"`, `\`, "\x00\x1f\n\r\t\b\f", "<&>", "é\u2028\u2029", "😀", "\x7f"}

// TestAppendEqualsEncodingJSON compares the documents that are appended without reflection with those of encoding/json, which escapes
// more characters.
func TestAppendEqualsEncodingJSON(t *testing.T) {
	pick := func(n int) (list []string) {
		for range n {
			list = append(list, oddTexts[rand.IntN(len(oddTexts))])
		}
		return list
	}
	at := func() time.Time {
		return time.Unix(rand.Int64N(4e9), rand.Int64N(1e9)).In(time.FixedZone("", 3600))
	}
	for i := range 1000 {
		run := runs.Run{
			ID: store.NewID(), Status: pick(1)[0], MeasurementType: pick(1)[0], MethodologyVersion: pick(1)[0], ModelIDs: pick(i % 4),
			QuestionIDs: pick(i % 5), Repetitions: rand.IntN(20), Locale: pick(1)[0], Country: pick(1)[0], Language: pick(1)[0],
			TotalJobs: rand.IntN(1e6), Running: rand.IntN(100), Completed: rand.IntN(100), Failed: rand.IntN(100), Canceled: rand.IntN(100),
			CreatedAt: at(),
		}
		if i%2 == 0 {
			run.StartedAt = new(at())
		}
		if i%3 == 0 {
			run.FinishedAt = new(at())
		}
		credential := auth.Credential{
			ID: store.NewID(), Name: pick(1)[0], KeyPrefix: pick(1)[0], Scopes: pick(i % 4), RateLimit: rand.IntN(1e6),
			Plan: auth.Plan{Code: pick(1)[0], Features: pick(i % 5)},
		}
		result := results.Result{
			Key: jobs.Key{Account: run.AccountID, Run: run.ID, Ordinal: int32(i + 1)}, ModelID: pick(1)[0], QuestionID: pick(1)[0], Repetition: i,
			Status: pick(1)[0], Attempts: i, StartedAt: run.StartedAt, FinishedAt: run.FinishedAt,
		}
		switch i % 3 {
		case 0:
			result.ErrorCode, result.ErrorMessage = new(pick(1)[0]), new(pick(1)[0])
		case 1:
			a := &answers.Answer{Text: pick(1)[0], SearchQueries: pick(i % 4), AnsweredAt: at(), Truncated: i%2 == 0}
			for n := range i % 5 {
				a.Citations = append(a.Citations, answers.Citation{Position: n + 1, URL: pick(1)[0], Domain: pick(1)[0], Title: a.ModelVersion})
				a.ModelVersion = new(pick(1)[0])
			}
			if i%4 == 0 {
				a.Searched = new(i%8 == 0)
				a.Usage = &answers.Usage{InputTokens: new(int64(i))}
			}
			result.Answer = a
		}
		for _, document := range []struct{ want, got []byte }{
			{gateway.ResultByReflection(&result), gateway.AppendResult(nil, &result)},
			{gateway.RunByReflection(&run), gateway.AppendRun(nil, &run)},
			{gateway.IdentityByReflection(&credential), gateway.AppendIdentity(nil, &credential)},
		} {
			if diff := cmp.Diff(tokens(t, document.want), tokens(t, document.got)); diff != "" {
				t.Fatalf("(-encoding/json +appended):\n%s", diff)
			}
		}
	}
}

func tokens(t *testing.T, text []byte) (all []json.Token) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return all
		}
		must(t, err)
		all = append(all, token)
	}
}

func BenchmarkAppendRun(b *testing.B) {
	run := runs.Run{ID: store.NewID(), Status: "queued", MeasurementType: "grounded", MethodologyVersion: "AIVM-1.0", ModelIDs: []string{"golden/all"},
		QuestionIDs: []string{"golden-q1", "golden-q2"}, Repetitions: 3, Locale: "it-IT", Country: "IT", Language: "it", TotalJobs: 6, CreatedAt: time.Now()}
	b.Run("reflection", func(b *testing.B) {
		for b.Loop() {
			gateway.RunByReflection(&run)
		}
	})
	b.Run("appended", func(b *testing.B) {
		var buffer []byte
		for b.Loop() {
			buffer = gateway.AppendRun(buffer[:0], &run)
		}
	})
}
