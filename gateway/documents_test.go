package gateway

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/auth"
	"aiv/gateway/wire"
	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/limits"
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
	if diff := cmp.Diff(tokens(wire.Encode(wireType)), tokens(appended)); diff != "" {
		t.Fatalf("(-encoding/json +appended):\n%s", diff)
	}
}

// tokens returns the tokens of valid JSON.
func tokens(text []byte) (all []json.Token) {
	d := json.NewDecoder(bytes.NewReader(text))
	for token, err := d.Token(); err == nil; token, err = d.Token() {
		all = append(all, token)
	}
	return all
}

// TestAnswerCharacters: a tool cuts texts between characters, and marks those that it cuts.
func TestAnswerCharacters(t *testing.T) {
	type document struct {
		Text       string
		Truncated  bool `json:"text_truncated"`
		Characters int  `json:"text_characters"`
	}
	for _, character := range []string{"x", "è", "日", "😀", "\n"} {
		for _, length := range []int{0, 1, 5, 6, 600} {
			for _, chars := range []int{-1, 0, 5, 600} {
				want := document{Text: strings.Repeat(character, length)}
				if chars >= 0 && length > chars {
					want = document{strings.Repeat(character, chars), true, length}
				}
				var got document
				text := appendAnswer(nil, &answers.Answer{Text: strings.Repeat(character, length)}, chars)
				if err := json.Unmarshal(text, &got); err != nil || got != want {
					t.Errorf("%d times %q cut to %d: %+v, %v", length, character, chars, got, err)
				}
			}
		}
	}
}

// TestCSVFields: texts are quoted where RFC 4180 requires it. The golden file shows whole lines.
func TestCSVFields(t *testing.T) {
	for text, want := range map[string]string{"=1+1": "=1+1", "A, B": `"A, B"`, `A "B"`: `"A ""B"""`,
		"two\r\nlines": "\"two\r\nlines\"", "\n": "\"\n\"", "\r": "\"\r\""} {
		if got := string(appendField(nil, text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestMetricsJSON: a row has its group and its brand, whatever texts these contain. The golden files show each
// dimension and the cells.
func TestMetricsJSON(t *testing.T) {
	const topic, name = `"\é`, `A "<&>"`
	q := &metricsQuery{Query: visibility.Query{GroupBy: []visibility.Dimension{visibility.ByTopic, visibility.ByBranded}}}
	brand := &brands.Brand{ID: store.NewID(), Name: name, Kind: brands.Competitor}
	m := &visibility.Metrics{Rows: []visibility.Row{{Group: []string{topic, "true"}, Brand: brand}}}
	type row struct {
		Group     map[string]any
		BrandID   string `json:"brand_id"`
		BrandName string `json:"brand_name"`
	}
	var got struct{ Data []row }
	if err := json.Unmarshal(metricsJSON(q, m, nil), &got); err != nil {
		t.Error(err)
	}
	want := []row{{map[string]any{"topic": topic, "branded": true}, brand.ID.Text("brand"), name}}
	if diff := cmp.Diff(want, got.Data); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUsageDocument: a month is that of UTC in any time zone of the process, and a quota that was lowered leaves
// nothing.
func TestUsageDocument(t *testing.T) {
	month := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).In(time.FixedZone("", -3600))
	got := newUsageDocument(runs.MonthlyUsage{Month: month, Jobs: 10}, new(int64(9)))
	want := usageDocument{Month: "2026-11", Jobs: usageJobs{Ordered: 10}, Quota: usageQuota{new(int64(9)), new(int64(0))}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSecondsLeft: clients that wait so long do not come back before the end of the window. The clock may pass the end
// while it is read.
func TestSecondsLeft(t *testing.T) {
	for left, want := range map[time.Duration]int{-time.Second: 1, 0: 1, 1: 1, time.Second: 1, time.Second + 1: 2,
		time.Minute: 60} {
		if got := secondsLeft(&limits.Window{Left: left}); got != want {
			t.Errorf("%v: got %d, want %d", left, got, want)
		}
	}
}
