package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"aiv/gateway"
	"aiv/insights/webhooks"
	"aiv/runs/schedules"
	"aiv/store"
)

// A sampleSchedule is a weekly schedule of the sample account. Its history are the sample runs whose names begin with
// runs.
type sampleSchedule struct {
	name, runs  string
	what        series
	repetitions int64
}

var sampleSchedules = []sampleSchedule{
	{"Running shoes", "shoes ", shoes, 4},
	{"Scarpe e scarponi", "scarpe ", scarpe, 4},
	{"Boots", "boots ", boots, 6},
}

// createSchedules creates the schedules, has the program evaluate their runs of the past, and lets them act for the new
// key.
func (d *past) createSchedules(ctx context.Context, credential store.ID) error {
	for i := range sampleSchedules {
		s := &sampleSchedules[i]
		ids := 0
		config := schedules.Config{Pool: d.pool, Record: webhooks.Record, Events: gateway.EventData{}, NewID: func() store.ID {
			ids++
			return d.id(s.name, fmt.Sprint(ids), d.account.CreatedAt)
		}}
		writer := schedules.New(config)
		due := d.due(s)
		made, err := writer.Create(ctx, d.account.ID, credential, s.change(due[len(due)-1].DueAt))
		if conflict, ok := errors.AsType[*schedules.ExistsError](err); ok {
			if made, err = writer.Update(ctx, d.account.ID, conflict.ID, credential, schedules.Change{}); err != nil {
				return err
			}
			if complete, err := d.hasHistory(ctx, made.ID, due); err != nil {
				return err
			} else if complete {
				continue
			}
			ids = 1 // the id of the schedule is the first
		} else if err != nil {
			return err
		}
		scheduler := schedules.NewScheduler(schedules.SchedulerConfig{Config: config, Derived: gateway.EventData{}, Log: slog.New(slog.DiscardHandler)})
		if err := scheduler.Backdate(ctx, d.account.ID, made.ID, due); err != nil {
			return err
		}
	}
	return nil
}

// hasHistory reports whether the runs of a schedule have been evaluated. An interrupted start leaves some that are not.
func (d *past) hasHistory(ctx context.Context, id store.ID, due []schedules.Past) (bool, error) {
	found, err := schedules.Occurrences(ctx, d.pool, d.account.ID, id, "", store.Page{Limit: 10_000})
	if err != nil {
		return false, err
	}
	evaluated := 0
	for i := range found {
		isPast := slices.ContainsFunc(due, func(p schedules.Past) bool { return p.DueAt.Equal(found[i].DueAt) })
		if isPast && found[i].EvaluatedAt != nil {
			evaluated++
		}
	}
	return evaluated == len(due), nil
}

// due returns the due times of a schedule's runs.
func (d *past) due(s *sampleSchedule) (past []schedules.Past) {
	for _, r := range sampleRuns {
		if strings.HasPrefix(r.name, s.runs) {
			at := d.at(&r)
			past = append(past, schedules.Past{DueAt: at.Truncate(time.Minute), Run: d.runID(r), EvaluatedAt: at.Add(r.waited + r.took + 2*time.Second)})
		}
	}
	slices.SortFunc(past, func(a, b schedules.Past) int { return a.DueAt.Compare(b.DueAt) })
	return past
}

// change returns the members of the schedule that has a due time.
func (s *sampleSchedule) change(due time.Time) schedules.Change {
	due = due.UTC()
	return schedules.Change{
		Name: &s.name, Cadence: new(schedules.Weekly),
		Weekday: &schedules.Word{Value: &schedules.Weekdays[due.Weekday()]},
		At:      new(due.Hour()*60 + due.Minute()), Zone: new("UTC"), MinChange: new(schedules.DefaultMinChange),
		Run: &schedules.RunTerms{
			ModelIDs: s.what.models, QuestionIDs: s.what.questions, Repetitions: s.repetitions,
			MeasurementType: "grounded", Locale: s.what.locale, Country: s.what.country, Language: s.what.language,
		},
	}
}
