package visibility_test

import (
	"strings"
	"testing"

	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/store"
)

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
	for _, err := range []error{merge(t, s.counter), recount(t, s.counter)} {
		if err == nil || !strings.Contains(err.Error(), damaged.Text("acct")) {
			t.Errorf("got %v, want damaged facts of %s", err, damaged.Text("acct"))
		}
	}
	s.check(t, "the other account", visibility.Answers{OK: 3}, 3)
}

// TestLostRevision: a process that has counted with a change which a failover lost counts with the next change, although
// it has the revision of the lost one. A chunk of an older revision that was inserted after the recount had ended is
// recounted by a process that starts long after the change.
func TestLostRevision(t *testing.T) {
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
	s.exec(t, `UPDATE visibility_facts SET revision = revision - 1`)
	s.exec(t, `UPDATE brand_revisions SET changed_at = changed_at - interval '3 hours'`)
	s.check(t, "with a stale chunk", visibility.Answers{Recounting: 3}, 0)
	must(t, recount(t, newCounter(s.plain)))
	s.check(t, "recounted", visibility.Answers{OK: 3}, 2)
}
