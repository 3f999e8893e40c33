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

// The size of the benchmark: runs of 50 models × 100 questions × 20 repetitions, as many answers as a million together.
const (
	benchRuns, benchModels, benchQuestions, benchRepetitions = 10, 50, 100, 20
	benchBrands, benchChunk                                  = 10, 500
)

// BenchmarkReads reads the metrics and the sources of 1,000,000 answers.
func BenchmarkReads(b *testing.B) {
	pool := storetest.New(b)
	account := fillFacts(b, pool)
	for _, by := range []Dimension{"", ByModel, ByDay, ByQuestion} {
		b.Run("metrics_"+string(by), func(b *testing.B) {
			q := &Query{Zone: time.UTC}
			if by != "" {
				q.GroupBy = []Dimension{by}
			}
			for b.Loop() {
				m, err := ReadMetrics(b.Context(), pool, account, q)
				if err != nil || m.Answers.OK != benchRuns*benchModels*benchQuestions*benchRepetitions {
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
		if _, err := pool.Exec(b.Context(), sql, args...); err != nil {
			b.Fatal(err)
		}
	}
	exec(`WITH p AS (INSERT INTO plans (code, features) VALUES ('p', '{api_access}')) INSERT INTO accounts (id, name, plan_code) VALUES ($1, 'a', 'p')`, account)
	exec(`INSERT INTO brands (account_id, id, number, kind, name, aliases, domains, exclude, match_case, status)
SELECT $1, gen_random_uuid(), n, CASE n WHEN 1 THEN 'own' ELSE 'competitor' END, 'Brand ' || n, '{}', '{}', '{}', false, 'active' FROM generate_series(1, 10) n`, account)
	exec(`INSERT INTO brand_revisions VALUES ($1, 10, now(), now())`, account)
	var models, questions []string
	for i := range benchModels {
		models = append(models, fmt.Sprintf("model-%02d", i))
	}
	for i := range benchQuestions {
		questions = append(questions, fmt.Sprintf("question-%03d", i))
	}
	for day := range benchRuns {
		run := &countedRun{account: account, id: store.NewID(), repetitions: benchRepetitions, total: benchModels * benchQuestions * benchRepetitions}
		exec(`INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids, repetitions,
  locale, country, language, total_jobs, jobs_completed, jobs_counted, created_at, started_at, finished_at)
VALUES ($1, $2, $2, 'completed', 'grounded', 'AIVM-1.0', $3, $4, $5, 'it-IT', 'IT', 'it', $6, $6, $6, now() - interval '1 day' * $7, now(), now())`,
			account, run.id, models, questions, run.repetitions, run.total, day)
		var batch pgx.Batch
		for first := int32(1); first <= run.total; first += benchChunk {
			facts := benchFacts(r, first)
			batchChunks(&batch, newChunks(run, 10, facts, func(n int32) bool { return n == 1 }, false, true))
		}
		if err := pool.SendBatch(b.Context(), &batch).Close(); err != nil {
			b.Fatal(err)
		}
	}
	exec(`VACUUM ANALYZE visibility_facts`)
	var size int64
	if err := pool.QueryRow(b.Context(), `SELECT pg_total_relation_size('visibility_facts')`).Scan(&size); err != nil {
		b.Fatal(err)
	}
	b.Logf("%d bytes an answer", size/(benchRuns*benchModels*benchQuestions*benchRepetitions))
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
