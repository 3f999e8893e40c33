package jobs_test

import (
	"encoding/json"
	"testing"

	"aiv/runs/jobs"
)

// TestFlat: the pages that a claim reads depend neither on how many accounts, runs and jobs wait, nor on how many leases are held
// or jobs are done. A purge reads old answers only.
func TestFlat(t *testing.T) {
	small, large := newSite(t), newSite(t)
	fill := func(s *site, accounts, runs int) {
		s.exec(t, `
INSERT INTO job_turns (account_id, provider_code, turn, any_turn)
  SELECT md5('a' || a)::uuid, 'p' || p, a, a FROM generate_series(1, $1::integer) a, generate_series(1, 2) p`, accounts)
		s.exec(t, `
INSERT INTO job_queue (account_id, run_id, model_no, provider_code, run_created_at, next_ordinal, last_ordinal)
  SELECT md5('a' || a)::uuid, md5('r' || r)::uuid, p, 'p' || p, now(), 1, 1000
  FROM generate_series(1, $1::integer) a, generate_series(1, $2::integer) r, generate_series(1, 2) p`, accounts, runs)
		s.exec(t, `
INSERT INTO job_leases (account_id, run_id, ordinal, last_ordinal, provider_code, run_created_at, state, attempt, tries, until, started_at, worker_id)
  SELECT md5('a' || a)::uuid, md5('l' || r)::uuid, 1, 1, 'p1', now(), state, 1, 0, now() + interval '1 h', now(), md5('')::uuid
  FROM generate_series(1, $1::integer) a, generate_series(1, $2::integer) r, unnest('{held,waiting}'::text[]) state
  ON CONFLICT DO NOTHING`, accounts, runs)
		s.exec(t, `
INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, started_at, finished_at, answer)
  SELECT md5('a' || a)::uuid, md5('f' || r)::uuid, o, 1, true, now(), now() - interval '30 days' * (o - 1), CASE o WHEN 1 THEN 'kept' END
  FROM generate_series(1, $1::integer) a, generate_series(1, $2::integer) r, generate_series(1, 2) o`, accounts, runs)
	}
	fill(small, 12, 12)
	fill(large, 400, 50)
	for sql, args := range jobs.FlatStatements {
		few, many := small.pages(t, sql, args), large.pages(t, sql, args)
		// A larger index has another level.
		if many > few+few/2+10 {
			t.Errorf("%d pages are read where little waits, %d where much does:\n%s", few, many, sql)
		}
	}
}

// pages returns how many pages of tables and indexes a statement reads.
func (s *site) pages(t *testing.T, sql string, args []any) int {
	t.Helper()
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	for range 2 { // the first time includes what pruning reads
		var text []byte
		must(t, s.pool.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sql, args...).Scan(&text))
		must(t, json.Unmarshal(text, &plans))
	}
	return plans[0].Plan.Hit + plans[0].Plan.Read
}
