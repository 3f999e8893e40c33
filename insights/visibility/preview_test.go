package visibility_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/runs/answers"
	"aiv/store"
)

// createRunAt creates a run that was created some minutes after others.
func (s *site) createRunAt(t *testing.T, minutes, jobs int) store.ID {
	t.Helper()
	r := simpleRun(jobs)
	r.created = r.created.Add(time.Duration(minutes) * time.Minute)
	return s.createRun(t, r)
}

// preview previews a draft, and returns which jobs it has read.
func (s *site) preview(t *testing.T, d visibility.Draft, run *store.ID) (
	p *visibility.Preview, read []int32, err error) {
	c := config(nil)
	answers := c.Answers
	c.Answers = func(ctx context.Context, db store.Querier, account, run store.ID, ordinals []int32,
		each func([]visibility.Job) error) error {
		read = append(read, ordinals...)
		return answers(ctx, db, account, run, ordinals, each)
	}
	d.NewID = store.NewID()
	p, err = visibility.NewCounter(c).Preview(t.Context(), s.plain, s.account, &d, run)
	return p, read, err
}

// TestPreviewOrder: answers are matched newest run first, in the run's order, without those that are empty or
// truncated, which are not even read if their facts say so.
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

	d := visibility.Draft{Change: named(brands.Own, "Kovalt")}
	d.Change.Domains = []string{"kovalt.com"}
	got, read, err := s.preview(t, d, nil)
	want := &visibility.Preview{Answers: 4, Mentioned: 3, Cited: 1, Names: []string{"Kovalt"}}
	want.Samples = []visibility.Sample{
		{Run: newer, Ordinal: 1, Matched: "Kovalt", Excerpt: "Kovalt"},
		{Run: newer, Ordinal: 4, Matched: "Kovalt", Excerpt: "Words of Kovalt."},
		{Run: older, Ordinal: 1, Matched: "Kovalt", Excerpt: "Kovalt is old."},
	}
	if diff := cmp.Diff(want, got); diff != "" || !slices.Equal(read, []int32{1, 2, 3, 4, 1, 2}) {
		t.Errorf("all runs: %v, answers read: %v (-want +got):\n%s", err, read, diff)
	}
	got, _, err = s.preview(t, d, &older)
	want.Answers, want.Mentioned, want.Samples = 2, 1, want.Samples[2:]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("one run: %v (-want +got):\n%s", err, diff)
	}
	s.account = s.newAccount(t)
	if _, _, err := s.preview(t, d, &older); !errors.Is(err, visibility.ErrRunNotFound) {
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
	d := visibility.Draft{Change: named(brands.Own, "Kovalt")}
	got, read, err := s.preview(t, d, nil)
	if err != nil || got.Answers != 200 || got.Mentioned != 200 || len(got.Samples) != 20 {
		t.Errorf("%d answers, %d that mention the brand, %d samples, %v", got.Answers, got.Mentioned, len(got.Samples), err)
	}
	if len(read) > 216 { // 16 at a time
		t.Errorf("%d answers were read", len(read))
	}

	long := "Kovalt" + strings.Repeat(" word", 50_000) // 250,006 bytes
	s.createRunAt(t, 100, 17)
	s.answer(t, s.older, texts(17, long)...)
	if got, _, err := s.preview(t, d, nil); err != nil || got.Answers != 4<<20/len(long) {
		t.Errorf("got %d answers of %d bytes, %v", got.Answers, len(long), err)
	}
}

// TestPreviewReplaces: answers are matched with the draft in place of its brand. The golden files have the conflicts.
func TestPreviewReplaces(t *testing.T) {
	t.Parallel()
	s, run := newRunningSite(t, 2)
	s.answer(t, s.dispatcher, &answers.Answer{Text: "Ostrel is good."}, &answers.Answer{Text: "Kovalt is better."})
	ostrel := s.createBrand(t, brands.Own, "Ostrel") // where both have a name, it is that of the own brand
	d := visibility.Draft{Change: named(brands.Competitor, "Ostrel"), Replaces: &ostrel}
	d.Change.Aliases = []string{"Kovalt"}
	got, _, err := s.preview(t, d, &run)
	if err != nil || got.Mentioned != 2 || !slices.Equal(got.Names, []string{"Ostrel", "Kovalt"}) {
		t.Errorf("got %+v, %v", got, err)
	}
}
