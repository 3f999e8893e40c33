package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// executorFunc is an Executor.
type executorFunc func(context.Context, Job) Outcome

func (f executorFunc) Execute(ctx context.Context, job Job) Outcome { return f(ctx, job) }

// TestClaimedJob: a claim has the members of a job, its JSON, and the database's time, although the clock of this machine
// is years behind.
func TestClaimedJob(t *testing.T) {
	t.Parallel()
	const known = `{"id":"job_1","attempt":2,"lease_until":"2026-03-02T09:31:15.5Z","account_id":"acct_1","run_id":"run_1",` +
		`"measurement_type":"grounded","methodology_version":"AIVM-1.0",` +
		`"model":{"id":"openai/gpt-5","provider":"openai","provider_model":"gpt-5"},` +
		`"question":{"id":"q-1","text":"Which?","language":"en","country":"US"},` +
		`"repetition":3,"locale":"en-US","country":"US","language":"en"`
	synctest.Test(t, func(t *testing.T) {
		w, _, _ := newWorker(0, func(context.Context, string, string) (int, string, error) {
			return 200, `{"jobs":[` + known + `, "new": 1}]}`, nil
		})
		tasks, err := w.claimWithin(t.Context(), 1, 0)
		if err != nil || len(tasks) != 1 {
			t.Fatalf("%d jobs, %v", len(tasks), err)
		}
		defer w.release(tasks[0])
		got, err := json.Marshal(tasks[0].Job)
		equal(t, "members", string(got), known+"}")
		equal(t, "JSON", string(tasks[0].Raw), known+`, "new": 1}`)
		time.Sleep(20 * time.Second)
		equal(t, "time", tasks[0].Now(), time.Date(2026, 3, 2, 9, 30, 35, 500_000_000, time.UTC))
		if err != nil {
			t.Error(err)
		}
	})
}

// TestOutcomeDependsOnTheLease: what becomes of a job depends on its outcome, and on what happens to its lease and its
// worker until then.
func TestOutcomeDependsOnTheLease(t *testing.T) {
	t.Parallel()
	after := func(during func(*worker, *task), o Outcome) func(*worker, *task) Executor {
		return func(w *worker, job *task) Executor {
			return executorFunc(func(ctx context.Context, _ Job) Outcome {
				if during != nil {
					during(w, job)
					<-ctx.Done()
				}
				return o
			})
		}
	}
	command := func(args ...string) func(*worker, *task) Executor {
		return func(*worker, *task) Executor { return Command{args, time.Second} }
	}
	lose := func(w *worker, job *task) { w.lose(job, "lost") }
	end := func(w *worker, _ *task) { w.endJobs() }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	fatal, unavailable := Fatal{errors.New("no credentials")}, Unavailable{"secret", "No."}
	for _, test := range []struct {
		name     string
		ctx      context.Context // of the worker; it ends when the worker is asked to end
		executor func(*worker, *task) Executor
		want     string // empty: nothing is settled
		failure  string // of the worker
	}{
		{"completed", t.Context(), after(nil, Completed{}), "completed", "<nil>"},
		{"fatal", t.Context(), after(nil, fatal), "released", "no credentials"},
		{"unavailable", t.Context(), after(nil, unavailable), "unavailable", "provider p is unavailable (secret): No. It is paused; " +
			"correct the cause, then run aiv providers resume p -note TEXT"},
		{"none", t.Context(), after(nil, nil), "released", "<nil>"},
		{"completed after the lease", t.Context(), after(lose, Completed{}), "", "<nil>"},
		{"fatal after the lease", t.Context(), after(lose, fatal), "", "<nil>"},
		{"completed while the worker ends", t.Context(), after(end, Completed{}), "completed", "<nil>"},
		{"noted while the worker ends", t.Context(), after(end, Noted{Completed{}, nil}), "completed", "<nil>"},
		{"unavailable while the worker ends", t.Context(), after(end, Noted{unavailable, nil}), "released", "<nil>"},
		{"fatal because the worker ends", t.Context(), after(end, fatal), "released", "<nil>"},
		{"asked to end before", ended, command("/nonexistent"), "released", "<nil>"},
		{"no such command", t.Context(), command("/nonexistent"), "released", "the command cannot be started: "},
		{"the output stays open", t.Context(), command("sh", "-c", `sleep 3 & echo '{}'`), "completed", "<nil>"},
	} {
		w, _, _ := newWorker(0, nil)
		w.hard, w.endJobs = context.WithCancel(t.Context())
		job := &task{Job: Job{ID: "job_1", Attempt: 1, Model: Model{Provider: "p"}}}
		w.hold([]*task{job}, time.Now().Add(time.Hour))
		w.cfg.Executor = test.executor(w, job)
		s, ok := w.execute(test.ctx, job)
		if s.outcome != test.want || ok != (test.want != "") || !strings.HasPrefix(fmt.Sprint(w.failure()), test.failure) {
			t.Errorf("%s: the job is %q (%t), the worker has the error %v", test.name, s.outcome, ok, w.failure())
		}
		w.release(job)
	}
}

// TestSettlementsHaveTheirMembers: the JSON of each outcome has exactly the members that the worker interface requires.
func TestSettlementsHaveTheirMembers(t *testing.T) {
	t.Parallel()
	version, title := "gpt-5-2026", "Shoes"
	answer := Answer{
		Text: "Shoes & <more>", Citations: []Citation{{"https://example.org/", &title}, {"https://example.com/", nil}},
		SearchQueries: []string{"shoes"}, ModelVersion: &version, AnsweredAt: time.Date(2026, 3, 2, 9, 30, 20, 0, time.UTC),
		Searched: new(true), Truncated: true, Usage: &Usage{InputTokens: new(int64(7)), OutputTokens: new(int64(0))},
	}
	for _, test := range []struct {
		outcome Outcome
		want    string // after id and attempt
	}{
		{Completed{Answer: answer}, `"outcome":"completed","answer":{"text":"Shoes \u0026 \u003cmore\u003e",` +
			`"citations":[{"url":"https://example.org/","title":"Shoes"},{"url":"https://example.com/","title":null}],` +
			`"search_queries":["shoes"],"model_version":"gpt-5-2026","answered_at":"2026-03-02T09:30:20Z",` +
			`"searched":true,"truncated":true,"usage":{"input_tokens":7,"output_tokens":0,"searches":null}}`},
		{Completed{Answer: Answer{AnsweredAt: answer.AnsweredAt}}, `"outcome":"completed","answer":{"text":"",` +
			`"citations":[],"search_queries":[],"model_version":null,"answered_at":"2026-03-02T09:30:20Z",` +
			`"searched":null,"truncated":false,"usage":null}`},
		{Completed{Raw: json.RawMessage(`{"text": 1}`)}, `"outcome":"completed","answer":{"text":1}`},
		{Failed{"content_refused", "no\x00 \uffff\xff"},
			`"outcome":"failed","error":{"code":"content_refused","message":"no` + "\ufffd \ufffd\ufffd" + `"}`},
		{Failed{"late", strings.Repeat("é", 2049)}, `"outcome":"failed","error":{"code":"late","message":"` + strings.Repeat("é", 2048) + `"}`},
		{Retry{"provider_timeout", "late", 1500 * time.Millisecond},
			`"outcome":"retry","error":{"code":"provider_timeout","message":"late"},"after_seconds":2`},
		{Throttled{}, `"outcome":"throttled","after_seconds":null`},
		{Throttled{time.Millisecond, "429"}, `"outcome":"throttled","after_seconds":1`},
		{Throttled{After: 48 * time.Hour}, `"outcome":"throttled","after_seconds":3600`},
		{Unavailable{"secret", "no\x00"}, `"outcome":"unavailable","reason":"secret","message":"no` + "\ufffd" + `"`},
		{Released{}, `"outcome":"released"`},
		{Noted{Failed{"late", ""}, []any{"ms", 1}}, `"outcome":"failed","error":{"code":"late","message":""}`},
		{Fatal{errors.New("no credentials")}, `"outcome":"released"`},
	} {
		s := newSettlement(&task{Job: Job{ID: "job_1", Attempt: 2}}, test.outcome)
		equal(t, fmt.Sprintf("%T", test.outcome), string(s.body), `{"id":"job_1","attempt":2,`+test.want+`}`)
		equal(t, fmt.Sprintf("%T without a job", test.outcome), string(Encode(test.outcome)), `{`+test.want+`}`)
	}
	for _, c := range []Completed{
		{Raw: json.RawMessage(`{`)},
		{Raw: json.RawMessage(`"` + strings.Repeat("<", 1<<20) + `"`)}, // six times as long when it is encoded
		{Answer: Answer{AnsweredAt: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}},
	} {
		if s := newSettlement(&task{}, c); s.outcome != "failed" || s.failure.Code != "invalid_answer" {
			t.Errorf("an answer that cannot be sent is %s with %+v", s.outcome, s.failure)
		}
	}
}
