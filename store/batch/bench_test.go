package batch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"aiv/store/batch"
	"aiv/store/storetest"
)

// BenchmarkBatcher increments one row in PostgreSQL: with one statement for each request, and in batches that
// increment it once for all waiting requests.
func BenchmarkBatcher(b *testing.B) {
	pool := storetest.Hot(b)
	storetest.Exec(b, pool, `CREATE TABLE bench (id int PRIMARY KEY, n bigint NOT NULL)`, `INSERT INTO bench VALUES (1, 0)`)
	count := func(ctx context.Context, in []int) ([]int64, error) {
		var n int64
		err := pool.QueryRow(ctx, `UPDATE bench SET n = n + $1 WHERE id = 1 RETURNING n`, len(in)).Scan(&n)
		out := make([]int64, len(in))
		for i := range out {
			out[i] = n - int64(len(in)-1-i)
		}
		return out, err
	}
	batcher := batch.New(batch.Config[int, int64]{Flush: count, Timeout: time.Minute, MaxWaiting: 10_000, MaxWeight: 10_000})
	single := func(ctx context.Context, in int) (int64, error) {
		out, err := count(ctx, []int{in})
		return out[0], err
	}
	for _, clients := range []int{1, 8, 64} {
		for name, do := range map[string]func(context.Context, int) (int64, error){"batcher": batcher.Do, "single": single} {
			b.Run(fmt.Sprintf("%s/%d", name, clients), func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(max(1, clients/2))
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := do(b.Context(), 1); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}
