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
	now := time.Now()
	const n = 100
	var body strings.Builder
	body.WriteString(`{"jobs":[`)
	account, run := store.NewID(), store.NewID()
	for i := range n {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"id":%q,"attempt":1,"outcome":"completed","answer":{"text":"%s","citations":[`, jobs.Key{Account: account, Run: run, Ordinal: int32(i + 1)}.String(),
			strings.Repeat("the answer  ", 1024/12))
		for c := range 3 {
			if c > 0 {
				body.WriteByte(',')
			}
			fmt.Fprintf(&body, `{"url":"https://www.example-%02d.com/reviews/%06d","title":"The best of %d"}`, i, c, 2016+c)
		}
		fmt.Fprintf(&body, `],"search_queries":[],"model_version":null,"answered_at":%q}}`, now.UTC().Format(time.RFC3339Nano))
	}
	body.WriteString(`]}`)
	text := body.String()
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
