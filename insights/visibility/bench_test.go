package visibility

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/storetest"
)

// The size of the benchmark: runs of 50 models × 100 questions × 20 repetitions, a million answers together.
const (
	benchRuns, benchModels, benchQuestions, benchRepetitions = 10, 50, 100, 20
	benchBrands, benchChunk                                  = 10, 500
	benchJobs                                                = benchModels * benchQuestions * benchRepetitions
)

// BenchmarkReads reads the metrics and the sources of 1,000,000 answers.
func BenchmarkReads(b *testing.B) {
	pool := storetest.New(b)
	account := fillFacts(b, pool)
	for _, by := range [][]Dimension{nil, {ByModel}, {ByDay}, {ByQuestion}} {
		b.Run(fmt.Sprint("metrics", by), func(b *testing.B) {
			for b.Loop() {
				m, err := ReadMetrics(b.Context(), pool, account, &Query{Zone: time.UTC, GroupBy: by})
				if err != nil || m.Answers.OK != benchRuns*benchJobs {
					b.Fatal(m, err)
				}
			}
		})
	}
	b.Run("sources", func(b *testing.B) {
		for b.Loop() {
			if _, err := ReadSources(b.Context(), pool, account, &SourceQuery{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// fillFacts makes an account with brands, runs and facts.
func fillFacts(b *testing.B, pool *pgxpool.Pool) store.ID {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	account := store.NewID()
	exec := func(sql string, args ...any) {
		_, err := pool.Exec(b.Context(), sql, args...)
		storetest.Must(b, err)
	}
	exec(`
WITH p AS (INSERT INTO plans (code, features) VALUES ('p', '{api_access}')),
a AS (INSERT INTO accounts (id, name, plan_code) VALUES ($1, 'a', 'p')),
b AS (INSERT INTO brands (account_id, id, number, kind, name, aliases, domains, exclude, match_case, status)
  SELECT $1, gen_random_uuid(), n, CASE n WHEN 1 THEN 'own' ELSE 'competitor' END, 'Brand ' || n, '{}', '{}', '{}', false, 'active'
  FROM generate_series(1, 10) n)
INSERT INTO brand_revisions VALUES ($1, 10, now(), now())`, account)
	for day := range benchRuns {
		run := &countedRun{account: account, id: store.NewID(), repetitions: benchRepetitions, total: benchJobs}
		exec(`
INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids,
  repetitions, locale, country, language, total_jobs, jobs_completed, jobs_counted, created_at, started_at, finished_at)
SELECT $1, $2, $2, 'completed', 'grounded', 'AIVM-1.0', array(SELECT 'model-' || n FROM generate_series(1, $3) n),
  array(SELECT 'question-' || n FROM generate_series(1, $4) n), $5, 'it-IT', 'IT', 'it', $6, $6, $6,
  now() - interval '1 day' * $7, now(), now()`,
			account, run.id, benchModels, benchQuestions, run.repetitions, run.total, day)
		var batch pgx.Batch
		for first := int32(1); first <= run.total; first += benchChunk {
			batchChunks(&batch, newChunks(run, 10, benchFacts(r, first), func(n int32) bool { return n == 1 }, false, true))
		}
		storetest.Must(b, pool.SendBatch(b.Context(), &batch).Close())
	}
	exec(`VACUUM ANALYZE visibility_facts`)
	size := storetest.Value[int64](b, pool, `SELECT pg_total_relation_size('visibility_facts')`)
	b.Logf("%d bytes an answer", size/(benchRuns*benchJobs))
	return account
}

// benchFacts returns the facts of a chunk: each brand is in a third of the answers, and each answer cites three pages.
func benchFacts(r *rand.Rand, first int32) []Fact {
	facts := make([]Fact, benchChunk)
	for i := range facts {
		f := &facts[i]
		f.Ordinal, f.Known = first+int32(i), true
		position := int32(0)
		for n := range int32(benchBrands) {
			if r.IntN(3) == 0 {
				position++
				f.Brands = append(f.Brands, BrandFact{Brand: n + 1, Mentions: int32(1 + r.IntN(2)), Position: position, Citations: int32(r.IntN(2))})
			}
		}
		for range 3 {
			host := fmt.Sprintf("www.example-%03d.com", r.IntN(1000))
			f.Pages = append(f.Pages, Page{Key: fmt.Sprintf("%s/reviews/%06d", host, r.IntN(1500)), Host: host})
		}
	}
	return facts
}
