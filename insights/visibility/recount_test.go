package visibility_test

import (
	"strings"
	"testing"

	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/store"
)

// TestBacklogCountsWhatWaits: the backlog has the answers of older revisions, and those of runs that a release without
// facts has settled.
func TestBacklogCountsWhatWaits(t *testing.T) {
	t.Parallel()
	s, _ := newRunningSite(t, 4)
	own := s.createBrand(t, brands.Own, "Kovalt")
	s.answer(t, s.dispatcher, texts(4, "Kovalt")...)
	s.createRun(t, simpleRun(3))
	s.answer(t, s.older, texts(3, "Kovalt")...)
	must(t, s.counter.FindUncounted(t.Context()))
	check := func(when string, want int64) {
		t.Helper()
		b, err := visibility.ReadBacklog(t.Context(), s.pool)
		must(t, err)
		if b.Answers != want {
			t.Errorf("%s: %d answers wait, want %d", when, b.Answers, want)
		}
	}
	check("settled", 3)
	s.changeBrand(t, own, alias("Kovalt CRM"))
	check("with another alias", 7)
	must(t, recount(t, s.counter))
	check("recounted", 0)
}

// TestDamagedFactsDelayNoOtherAccount: facts that cannot be decoded stop the recount of their account and the merge of
// their run only, and the errors name these.
func TestDamagedFactsDelayNoOtherAccount(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	damaged, other := s.account, s.newAccount(t)
	for _, s.account = range []store.ID{damaged, other} {
		own := s.createBrand(t, brands.Own, "Kovalt")
		s.createRun(t, simpleRun(3))
		s.answer(t, s.dispatcher, texts(3, "Kovalt")...)
		s.changeBrand(t, own, alias("Kovalt CRM"))
	}
	s.exec(t, `UPDATE visibility_facts SET facts = CASE account_id WHEN $1 THEN '\xff' ELSE facts END, small = true`, damaged)
	for _, step := range []func(testing.TB, *visibility.Counter) error{merge, recount} {
		if err := step(t, s.counter); err == nil || !strings.Contains(err.Error(), damaged.Text("acct")) {
			t.Errorf("got %v, want damaged facts of %s", err, damaged.Text("acct"))
		}
	}
	s.check(t, "the other account", visibility.Answers{OK: 3}, 3)
}

// TestStaleChunkAfterTheRecount: a chunk of an older revision that was inserted after the recount had ended is recounted
// by a process that starts long after the change.
func TestStaleChunkAfterTheRecount(t *testing.T) {
	t.Parallel()
	s, _ := newRunningSite(t, 3)
	s.createBrand(t, brands.Own, "Kovalt")
	s.answer(t, s.dispatcher, texts(3, "Kovalt")...)
	must(t, recount(t, s.counter))
	s.exec(t, `UPDATE visibility_facts SET revision = revision - 1`)
	s.exec(t, `UPDATE brand_revisions SET changed_at = changed_at - interval '3 hours'`)
	s.check(t, "with a stale chunk", visibility.Answers{Recounting: 3}, 0)
	must(t, recount(t, newCounter(s.plain)))
	s.check(t, "recounted", visibility.Answers{OK: 3}, 3)
}

// TestLostChange: a process that has counted with a change which a failover lost counts with the next change, although it
// has the revision of the lost one.
func TestLostChange(t *testing.T) {
	t.Parallel()
	s, _ := newRunningSite(t, 3)
	own := s.createBrand(t, brands.Own, "Kovalt")
	s.changeBrand(t, own, alias("Lost"))
	s.answer(t, s.dispatcher, texts(1, "Lost")...)
	s.exec(t, `UPDATE brands SET aliases = '{}'`)
	s.exec(t, `UPDATE brand_revisions SET revision = revision - 1`)
	s.exec(t, `UPDATE visibility_facts SET revision = revision - 1`)
	s.changeBrand(t, own, alias("Ostrel"))
	s.answer(t, s.dispatcher, texts(2, "Ostrel")...)
	must(t, recount(t, s.counter))
	s.check(t, "with the next change", visibility.Answers{OK: 3}, 2)
}
