package gateway

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/auth"
	"aiv/gateway/wire"
	"aiv/runs"
	"aiv/runs/answers"
	"aiv/runs/jobs"
	"aiv/runs/results"
	"aiv/store"
)

// TestAppendedIsTheWireType: the documents that are appended without reflection have the members of their wire types,
// whatever texts they contain. The golden files show the values.
func TestAppendedIsTheWireType(t *testing.T) {
	odd := []string{"", "plain", `"`, `\`, "\x00\x1f\n\r\t\b\f", "<&>", "é\u2028\u2029", "😀", "\x7f"}
	text := func() string { return odd[rand.IntN(len(odd))] }
	texts := func(n int) []string { return odd[:n%len(odd)] }
	at := func() time.Time {
		return time.Unix(rand.Int64N(4e9), rand.Int64N(1e9)).In(time.FixedZone("", 3600))
	}
	for i := range 300 {
		run := runs.Run{
			ID: store.NewID(), Status: text(), MeasurementType: text(), MethodologyVersion: text(), ModelIDs: texts(i),
			QuestionIDs: texts(i / 2), Locale: text(), Country: text(), Language: text(), CreatedAt: at(),
		}
		credential := auth.Credential{
			Name: text(), KeyPrefix: text(), Scopes: texts(i), Plan: auth.Plan{Code: text(), Features: texts(i / 2)},
		}
		result := results.Result{
			Key: jobs.Key{Account: run.AccountID, Run: run.ID, Ordinal: int32(i + 1)}, ModelID: text(), QuestionID: text(),
			Status: text(),
		}
		if i%2 == 0 {
			run.StartedAt, run.FinishedAt = new(at()), new(at())
			result.StartedAt, result.FinishedAt = new(at()), new(at())
		}
		switch i % 3 {
		case 0:
			result.ErrorCode, result.ErrorMessage = new(text()), new(text())
		case 1:
			a := &answers.Answer{Text: text(), SearchQueries: texts(i), AnsweredAt: at(), Truncated: i%2 == 0}
			for n := range i % 5 {
				citation := answers.Citation{Position: n + 1, URL: text(), Domain: text(), Title: a.ModelVersion}
				a.Citations = append(a.Citations, citation)
				a.ModelVersion = new(text())
			}
			if i%4 == 0 {
				a.Searched, a.Usage = new(i%8 == 0), &answers.Usage{InputTokens: new(int64(i))}
			}
			result.Answer = a
		}
		same(t, &runDocument{}, appendRun(nil, &run))
		same(t, &identity{}, appendIdentity(nil, &credential))
		same(t, &resultDocument{}, appendResult(nil, &countedResult{Result: result, chars: -1}))
	}
}

// same decodes a document into its wire type and compares what encoding/json makes of that, which escapes more
// characters.
func same(t *testing.T, wireType any, appended []byte) {
	t.Helper()
	if err := json.Unmarshal(appended, wireType); err != nil {
		t.Fatalf("%v: %s", err, appended)
	}
	if diff := cmp.Diff(tokens(t, wire.Encode(wireType)), tokens(t, appended)); diff != "" {
		t.Fatalf("(-encoding/json +appended):\n%s", diff)
	}
}

func tokens(t *testing.T, text []byte) (all []json.Token) {
	t.Helper()
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if err != nil {
			return all // the text is valid JSON
		}
		all = append(all, token)
	}
}
