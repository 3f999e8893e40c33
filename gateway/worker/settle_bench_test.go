package worker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/strictjson"
)

// BenchmarkReadSettlements reads a settlement of 100 answers of 1 KiB with three citations.
func BenchmarkReadSettlements(b *testing.B) {
	const n = 100
	const citation = `{"url":"https://www.example.com/reviews/000001","title":"The best of 2016"}`
	answer := fmt.Sprintf(`{"text":"%s","citations":[%s],"search_queries":[],"model_version":null,"answered_at":%q}`,
		strings.Repeat("the answer  ", 1024/12), citation+","+citation+","+citation, now.Format(time.RFC3339Nano))
	account, run := store.NewID(), store.NewID()
	var settlements []string
	for i := range n {
		id := jobs.Key{Account: account, Run: run, Ordinal: int32(i + 1)}.String()
		settlements = append(settlements, `{"id":"`+id+`","attempt":1,"outcome":"completed","answer":`+answer+`}`)
	}
	text := `{"jobs":[` + strings.Join(settlements, ",") + `]}`
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		v, err := strictjson.Parse(text, jsonLimits)
		if err != nil {
			b.Fatal(err)
		}
		if _, s, f := readSettlements(v, now); len(s) != n || len(f) > 0 {
			b.Fatal(len(s), f)
		}
	}
}
