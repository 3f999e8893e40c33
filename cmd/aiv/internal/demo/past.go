package demo

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/catalog"
	"aiv/cmd/aiv/internal/counting"
	"aiv/idempotency"
	"aiv/insights"
	"aiv/runs"
	"aiv/runs/jobs"
	"aiv/store"
)

// A past is the history of the sample account. Its ids and times follow from the account's id and creation, so that a
// start after an interrupted one writes what is missing and nothing twice.
type past struct {
	pool    *pgxpool.Pool
	account auth.Account
}

// write creates the runs, moves them to their states, creates the schedules, and imports the insights. These are imported
// last, in one transaction: if they exist, everything was written, and requests may have changed and deleted some of it.
func (d *past) write(ctx context.Context, credential store.ID) error {
	found, err := insights.Recommendations(ctx, d.pool, d.account.ID, insights.RecommendationFilter{Type: importedType}, store.Page{Limit: 1})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		if err := d.writeAll(ctx, credential); err != nil {
			return err
		}
	}
	if err := d.passSchedules(ctx, credential); err != nil {
		return fmt.Errorf("let the schedules act for the new key: %w", err)
	}
	return nil
}

// importedType is the type of a recommendation of insights.jsonl, and of no derived or earlier one.
const importedType = "answer_questions"

// writeAll writes what write describes. Each step may be repeated.
func (d *past) writeAll(ctx context.Context, credential store.ID) error {
	if err := d.createQuestion(ctx); err != nil {
		return fmt.Errorf("create the sample account's question: %w", err)
	}
	if err := d.createRuns(ctx, credential); err != nil {
		return fmt.Errorf("create the sample runs: %w", err)
	}
	if err := d.moveRuns(ctx); err != nil {
		return fmt.Errorf("move the sample runs: %w", err)
	}
	if err := d.createSchedules(ctx, credential); err != nil {
		return fmt.Errorf("create the sample schedules: %w", err)
	}
	if err := d.importInsights(ctx); err != nil {
		return fmt.Errorf("import the sample insights: %w", err)
	}
	return nil
}

// ownQuestion is about the sample account's brand.
const ownQuestion = `{"kind":"question","id":"en-fernmark-shoes","account_id":%q,"text":"Are the running shoes of Fernmark worth their price?",` +
	`"language":"en","country":"US","topic":"sport","tags":["shoes","brand"],"status":"active"}`

// createQuestion imports the account's own question. A repeated import changes nothing.
func (d *past) createQuestion(ctx context.Context) error {
	_, err := (&catalog.Admin{Pool: d.pool, Actor: actor}).Import(ctx, strings.NewReader(fmt.Sprintf(ownQuestion, d.account.ID.Text("acct"))), nil)
	return err
}

// createRuns creates the runs, has their jobs claimed and settled as a worker does, and cancels what is to be canceled.
func (d *past) createRuns(ctx context.Context, credential store.ID) error {
	// next is the id of the run that is created next. Create calls NewID once for each run.
	var next store.ID
	writer := runs.New(runs.Config{
		Pool: d.pool, Checks: unchecked{}, NewID: func() store.ID { return next }, Timeout: 30 * time.Second, MaxWaiting: len(sampleRuns),
		Enqueue: jobs.EnqueueSQL,
	})
	dispatcher := jobs.New(jobs.Config{
		Pool: d.pool, Timeout: 30 * time.Second, MaxWaiting: 10, Count: counting.Count(counting.New(d.pool, nil)),
	})
	defer dispatcher.Stop()
	if err := d.cancelOthers(ctx, writer); err != nil {
		return err
	}
	for _, r := range sampleRuns {
		next = d.runID(r)
		there, err := writer.Get(ctx, d.account.ID, next)
		switch {
		case err == nil:
			// It is final, or an interrupted start left it. Its jobs would be handed out before the jobs of the next
			// runs.
			if r.open() || there.FinishedAt != nil {
				continue
			}
			if _, err := writer.Cancel(ctx, d.account.ID, next); err != nil {
				return err
			}
			continue
		case !errors.Is(err, runs.ErrNotFound):
			return err
		}
		_, err = writer.Create(ctx, &runs.CreateRequest{
			Proposal: &runs.Proposal{
				Orderer:  runs.Orderer{AccountID: d.account.ID, CredentialID: credential},
				ModelIDs: r.what.models, QuestionIDs: r.what.questions, Repetitions: r.repetitions, MeasurementType: "grounded",
				Locale: r.what.locale, Country: r.what.country, Language: r.what.language,
			},
			// No request has this operation, so no customer's key collides with the names.
			Operation: idempotency.Operation{Method: "DEMO", Route: "aiv demo"}, Key: r.name,
			Response: func(*runs.Run) []byte { return []byte{} },
		})
		if err != nil {
			return err
		}
		if err := d.work(ctx, dispatcher, r); err != nil {
			return err
		}
		if r.canceled > 0 {
			if _, err := writer.Cancel(ctx, d.account.ID, next); err != nil {
				return err
			}
		}
	}
	return nil
}

// cancelOthers cancels the runs that a folder has from an earlier version of the program, and that are not final. Their
// jobs would be handed out among the jobs of the sample runs.
func (d *past) cancelOthers(ctx context.Context, writer *runs.Runs) error {
	isOpen := runs.Filter{Statuses: []string{"queued", "running"}}
	found, err := runs.List(ctx, d.pool, d.account.ID, isOpen, store.Page{Limit: 10_000})
	if err != nil {
		return err
	}
	for i := range found {
		id := found[i].ID
		if slices.ContainsFunc(sampleRuns, func(r sampleRun) bool { return d.runID(r) == id }) {
			continue
		}
		if _, err := writer.Cancel(ctx, d.account.ID, id); err != nil {
			return err
		}
	}
	return nil
}

// work claims and settles jobs of a run, which is the only one with jobs to hand out.
func (d *past) work(ctx context.Context, dispatcher *jobs.Dispatcher, r sampleRun) error {
	if r.completed+r.failed == 0 {
		return nil
	}
	claimed, err := dispatcher.Claim(ctx, &jobs.ClaimRequest{Worker: store.NewID(), Limit: r.completed + r.failed, Lease: time.Minute})
	if err != nil {
		return err
	}
	// The first jobs that were claimed get answers, and the rest fail. jobs.Backdate spreads the jobs evenly over the run,
	// by their ordinals. The answer of a job comes in the middle of its time.
	each := r.took / time.Duration(r.what.jobs()*int(r.repetitions))
	settlements := make([]jobs.Settlement, len(claimed))
	for i := range claimed {
		j := &claimed[i]
		s := jobs.Settlement{Key: j.Key, Attempt: j.Attempt, Outcome: jobs.Completed}
		if i < r.completed {
			at := d.at(&r).Add(r.waited + time.Duration(j.Key.Ordinal)*each - each/2)
			s.Answer = sampleAnswer(j, at, r.name, r.week())
		} else {
			s.Outcome, s.ErrorCode, s.ErrorMessage = jobs.Failed, "provider_error", "A sample failure of aiv demo."
		}
		settlements[i] = s
	}
	if len(settlements) == 0 {
		return nil // an operator has stopped the providers
	}
	_, err = dispatcher.Settle(ctx, jobs.Reporter{}, settlements)
	return err
}

// unchecked accepts every run: the sample runs do not depend on later changes of the catalog.
type unchecked struct{}

func (unchecked) Check(context.Context, *runs.Proposal) (string, error) { return "AIVM-1.0", nil }

// moveRuns moves the runs and their results into the past.
func (d *past) moveRuns(ctx context.Context) error {
	// reader only reads, so its checks and batchers do not matter.
	reader := runs.New(runs.Config{Pool: d.pool, Checks: unchecked{}, Timeout: 30 * time.Second, MaxWaiting: 1})
	// Counts and states are kept as they are; only the times move. Runs that were moved before stay.
	var moved []runs.Backdated
	for _, r := range sampleRuns {
		now, err := reader.Get(ctx, d.account.ID, d.runID(r))
		if err != nil {
			return err
		}
		p := runs.Backdated{
			ID: now.ID, Status: now.Status, CreatedAt: d.at(&r),
			Completed: now.Completed, Failed: now.Failed, Canceled: now.Canceled,
		}
		if now.StartedAt != nil {
			p.StartedAt = new(p.CreatedAt.Add(r.waited))
		}
		if now.FinishedAt != nil {
			p.FinishedAt = new(p.CreatedAt.Add(r.waited + r.took))
		}
		moved = append(moved, p)
	}
	if err := runs.Backdate(ctx, d.pool, d.account.ID, moved); err != nil {
		return err
	}
	return jobs.Backdate(ctx, d.pool, d.account.ID)
}

// ago returns a time before the account's creation.
func (d *past) ago(long time.Duration) time.Time { return d.account.CreatedAt.Add(-long) }

// runID returns the id of a sample run. Its time is when the run is created.
func (d *past) runID(r sampleRun) store.ID { return d.id("run", r.name, d.at(&r)) }

// brandID returns the id of a sample brand.
func (d *past) brandID(name string) store.ID { return d.id("brand", name, d.account.CreatedAt) }

// id returns the id of the given time for a name: the same for the same name and account.
func (d *past) id(kind, name string, at time.Time) store.ID {
	hash := sha256.Sum256([]byte(kind + " " + name + " " + d.account.ID.Text("acct")))
	id := store.ID(hash[:16])
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	// The first 48 bits of a UUID of version 7 are milliseconds since 1970.
	copy(id[:6], ms[2:])
	id[6] = id[6]&0x0f | 0x70 // UUID version 7
	id[8] = id[8]&0x3f | 0x80 // and its variant
	return id
}
