package jobs_test

import (
	"testing"

	"aiv/store"
)

// TestTurnsOfListedProviders: claims of one job that list several providers serve the accounts in turn, although they read few
// accounts of each provider and one account has jobs at more of them.
func TestTurnsOfListedProviders(t *testing.T) {
	s := newSite(t)
	d := s.dispatcher(t)
	both, first, second := s.account(t), s.account(t), s.account(t)
	s.createRun(t, both, []string{"m1", "m2"}, 20, 1)
	s.createRun(t, first, []string{"m1"}, 20, 1)
	s.createRun(t, second, []string{"m2"}, 20, 1)
	served := make(map[store.ID]int)
	ofBoth := make(map[string]int)
	for range 10 {
		round := make(map[store.ID]bool)
		for range 3 {
			j := claim(t, d, 1, "p1", "p2")[0]
			served[j.Key.Account]++
			round[j.Key.Account] = true
			if j.Key.Account == both {
				ofBoth[j.Provider]++
			}
		}
		if len(round) != 3 {
			t.Fatalf("three claims served %d of 3 accounts; so far %v", len(round), served)
		}
	}
	if ofBoth["p1"] < 3 || ofBoth["p2"] < 3 {
		t.Errorf("of the account with jobs at both providers, these were served: %v", ofBoth)
	}
	s.check(t)
}
