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

// sampleSchedules has a schedule for each series that is measured every week.
var sampleSchedules = []sampleSchedule{
	{"Running shoes", "shoes ", shoes, 4},
	{"Scarpe e scarponi", "scarpe ", scarpe, 4},
	{"Boots", "boots ", boots, 6},
}

// createSchedules creates the schedules, and has the program evaluate their runs of the past.
func (d *past) createSchedules(ctx context.Context, credential store.ID) error {
	for i := range sampleSchedules {
		s := &sampleSchedules[i]
		// The ids that a schedule needs are numbered in the order in which they are requested, so a repeated start gets
		// the same ids.
		ids := 0
		config := d.schedulesConfig(func() store.ID {
			ids++
			return d.id(s.name, fmt.Sprint(ids), d.account.CreatedAt)
		})
		due := d.due(s)
		var id store.ID
		made, err := schedules.New(config).Create(ctx, d.account.ID, credential, s.change(due[len(due)-1].DueAt))
		if conflict, ok := errors.AsType[*schedules.ExistsError](err); ok { // an interrupted start created it
			id, ids = conflict.ID, 1 // the id of the schedule is the first
		} else if err != nil {
			return err
		} else {
			id = made.ID
		}
		scheduler := schedules.NewScheduler(schedules.SchedulerConfig{Config: config, Derived: gateway.EventData{}, Log: slog.New(slog.DiscardHandler)})
		if err := scheduler.Backdate(ctx, d.account.ID, id, due); err != nil {
			return err
		}
	}
	return nil
}

// passSchedules lets the schedules of the account act for the new key, because the key of the last start is revoked.
func (d *past) passSchedules(ctx context.Context, credential store.ID) error {
	found, err := schedules.List(ctx, d.pool, d.account.ID, schedules.Filter{}, store.Page{Limit: schedules.MaxSchedules})
	if err != nil {
		return err
	}
	writer := schedules.New(d.schedulesConfig(store.NewID))
	for i := range found {
		if _, err := writer.Update(ctx, d.account.ID, found[i].ID, credential, schedules.Change{}); err != nil {
			return err
		}
	}
	return nil
}

// schedulesConfig returns the configuration with which requests create and change schedules, except for newID.
func (d *past) schedulesConfig(newID func() store.ID) schedules.Config {
	return schedules.Config{Pool: d.pool, NewID: newID, Record: webhooks.Record, Events: gateway.EventData{}}
}

// due returns the due times of a schedule's runs.
func (d *past) due(s *sampleSchedule) (past []schedules.Past) {
	for _, r := range sampleRuns {
		if strings.HasPrefix(r.name, s.runs) {
			at := d.at(&r)
			// A run was due at the minute in which it was created, and is evaluated two seconds after its end.
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
