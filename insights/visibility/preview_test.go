package visibility_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/runs/answers"
	"aiv/store"
	"aiv/store/storetest"
)

// createRunAt creates a run that was created some minutes after others.
func (s *site) createRunAt(t *testing.T, minutes, jobs int) store.ID {
	t.Helper()
	r := simpleRun(jobs)
	r.created = r.created.Add(time.Duration(minutes) * time.Minute)
	return s.createRun(t, r)
}

// preview previews a draft of a brand that is Kovalt and owns kovalt.com. It also returns which jobs it has read.
func (s *site) preview(t *testing.T, replaces, run *store.ID) (p *visibility.Preview, read []int32, err error) {
	c := config(nil)
	answers := c.Answers
	c.Answers = func(ctx context.Context, db store.Querier, account, run store.ID, ordinals []int32, each func([]visibility.Job) error) error {
		read = append(read, ordinals...)
		return answers(ctx, db, account, run, ordinals, each)
	}
	d := visibility.Draft{Change: named(brands.Competitor, "Kovalt"), Replaces: replaces, NewID: store.NewID()}
	d.Change.Domains = []string{"kovalt.com"}
	p, err = visibility.NewCounter(c).Preview(t.Context(), s.plain, s.account, &d, run)
	return p, read, err
}

// TestPreviewOrder: answers are matched newest run first, in the run's order, without those that are empty or
// truncated, which are not even read if their facts say so. The draft is in place of its brand; the golden files have
// its conflicts.
func TestPreviewOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	older := s.createRunAt(t, 1, 3) // one of its jobs has not ended
	s.answer(t, s.dispatcher, citing("Kovalt is old.", "https://kovalt.com/a"), &answers.Answer{Text: "Other words."})
	s.claim(t, 1)
	newer := s.createRunAt(t, 2, 6)
	cut, empty := &answers.Answer{Text: "Kovalt is cut", Truncated: true}, &answers.Answer{Text: " "}
	s.answer(t, s.older, &answers.Answer{Text: "Kovalt"}, cut, empty)
	s.answer(t, s.dispatcher, &answers.Answer{Text: "Words of Kovalt."}, cut, empty)
	ostrel := s.createBrand(t, brands.Own, "Ostrel")
	s.changeBrand(t, ostrel, alias("Kovalt")) // a name that both have is the own brand's

	got, read, err := s.preview(t, &ostrel, nil)
	must(t, err)
	storetest.Equal(t, &visibility.Preview{Answers: 4, Mentioned: 3, Cited: 1, Names: []string{"Kovalt"}, Samples: []visibility.Sample{
		{Run: newer, Ordinal: 1, Matched: "Kovalt", Excerpt: "Kovalt"},
		{Run: newer, Ordinal: 4, Matched: "Kovalt", Excerpt: "Words of Kovalt."},
		{Run: older, Ordinal: 1, Matched: "Kovalt", Excerpt: "Kovalt is old."},
	}}, got, "all runs")
	storetest.Equal(t, []int32{1, 2, 3, 4, 1, 2}, read, "answers read")
	got, _, err = s.preview(t, &ostrel, &older)
	must(t, err)
	storetest.Equal(t, "2 1 1", fmt.Sprint(got.Answers, got.Mentioned, len(got.Samples)), "answers, mentioned and samples of one run")
	s.account = s.newAccount(t)
	if _, _, err := s.preview(t, nil, &older); !errors.Is(err, visibility.ErrRunNotFound) {
		t.Errorf("another account's run: got %v", err)
	}
}

// TestPreviewBounds: at most 200 answers are matched, with texts of at most 4 MiB, and 20 of them are shown.
func TestPreviewBounds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.createRunAt(t, 1, 151)
	for minutes := range 60 { // more than are read at a time
		s.createRunAt(t, 2+minutes, 1)
	}
	s.answer(t, s.older, texts(211, "Kovalt")...)
	got, read, err := s.preview(t, nil, nil)
	if err != nil || got.Answers != 200 || got.Mentioned != 200 || len(got.Samples) != 20 || len(read) > 216 { // 16 at a time
		t.Errorf("%d answers were read: %+v, %v", len(read), got, err)
	}
	long := "Kovalt" + strings.Repeat(" word", 50_000) // 250,006 bytes
	s.createRunAt(t, 100, 17)
	s.answer(t, s.older, texts(17, long)...)
	if got, _, err := s.preview(t, nil, nil); err != nil || got.Answers != 4<<20/len(long) {
		t.Errorf("got %d answers of %d bytes, %v", got.Answers, len(long), err)
	}
}
