package demo

import (
	"fmt"
	"time"
)

// A sampleRun is a run of the past. Its times are relative to the creation of the sample account. The jobs that are in
// none of the states below are queued, and the sample worker answers them.
type sampleRun struct {
	name string // in insights.jsonl

	ago         time.Duration // since its creation
	waited      time.Duration // from its creation to its start; 0: not started
	took        time.Duration // from its start to its end; 0: not ended
	what        series
	repetitions int64
	weekly      bool

	completed, failed, canceled int
}

// open reports whether the run is not final yet.
func (r *sampleRun) open() bool { return r.took == 0 }

// week returns the week of the run, from 1 to weeks.
func (r *sampleRun) week() int { return weeks - int(r.ago/week) }

// A series is what several runs measure repeatedly.
type series struct {
	models, questions         []string
	locale, country, language string
}

// jobs returns how many jobs one repetition has.
func (s *series) jobs() int { return len(s.models) * len(s.questions) }

// searching are the models that the sample account measures every week. They search the web.
var searching = []string{"openai/gpt-5-search", "perplexity/sonar-pro", "google/gemini-2.5-pro"}

// The series that the sample account measures every week.
var (
	shoes = series{
		models: searching,
		questions: []string{
			"en-running-shoes", "en-trail-shoes", "en-marathon-shoes", "en-wide-shoes", "en-fernmark-shoes",
		},
		locale: "en-US", country: "US", language: "en",
	}
	scarpe = series{
		models: searching, questions: []string{"it-running-shoes", "it-hiking-boots"},
		locale: "it-IT", country: "IT", language: "it",
	}
	boots = series{
		models: searching, questions: []string{"en-hiking-boots", "en-winter-boots"},
		locale: "en-US", country: "US", language: "en",
	}
)

var (
	// scarpeNow is what the latest run measures: a model more, which has few answers.
	scarpeNow = series{
		models: append(searching[:3:3], handModel), questions: scarpe.questions,
		locale: "it-IT", country: "IT", language: "it",
	}
	// waiting are jobs for a worker that the reader starts.
	waiting = series{
		models: []string{handModel}, questions: scarpe.questions, locale: "it-IT", country: "IT", language: "it",
	}
)

// handModel is a model of handProvider.
const handModel = "mistral/le-chat"

const (
	day    = 24 * time.Hour
	week   = 7 * day
	weeks  = 12
	outage = 4 // the week in which all jobs failed
)

// sampleRuns are the weekly runs, then runs in other states. The open ones are the last: work claims the jobs of one
// run only if no other has jobs to hand out.
var sampleRuns = append(weeklyRuns(), []sampleRun{
	{name: "canceled 1", ago: 15*day + 5*time.Hour, took: 40 * time.Second, what: scarpe, repetitions: 20,
		canceled: 120},
	{name: "canceled 2", ago: 8*day + 5*time.Hour, waited: time.Second, took: 4 * time.Minute, what: boots,
		repetitions: 2, completed: 7, canceled: 5},
	{name: "running", ago: 8 * time.Minute, waited: 2 * time.Second, what: scarpe, repetitions: 3,
		completed: 9, failed: 1},
	{name: "queued", ago: 3 * time.Minute, what: boots, repetitions: 5},
	{name: "waiting", ago: 40 * time.Second, what: waiting, repetitions: 2},
}...)

// weeklyRuns returns the runs of the three series, oldest first. The runs of a week are within an hour.
func weeklyRuns() (all []sampleRun) {
	for n := 1; n <= weeks; n++ {
		ago := time.Duration(weeks-n) * week
		// The last runs are two to three hours older than the account, so that their results are in the past too.
		made := []sampleRun{
			{name: "shoes", ago: ago + 3*time.Hour, took: 12 * time.Minute, what: shoes, repetitions: 4},
			{name: "scarpe", ago: ago + 150*time.Minute, took: 9 * time.Minute, what: scarpe, repetitions: 4},
			{name: "boots", ago: ago + 2*time.Hour, took: 6 * time.Minute, what: boots, repetitions: 6},
		}
		// The last run of scarpe has a further model.
		if n == weeks {
			made[1].what = scarpeNow
		}
		for i := range made {
			r := &made[i]
			r.name = fmt.Sprint(r.name, " ", n)
			r.weekly, r.waited = true, time.Duration(2+i)*time.Second
			jobs := r.what.jobs() * int(r.repetitions)
			switch {
			case n == outage:
				r.failed = jobs
			case n%4 == 0 && i == 0:
				r.failed = 2
			}
			r.completed = jobs - r.failed
		}
		all = append(all, made...)
	}
	return all
}

// at returns the time at which a run of the past was created. The weekly runs of a week are in one week of the calendar
// in UTC: if a Monday began between them, they were all two hours earlier.
func (d *past) at(r *sampleRun) time.Time {
	at := d.ago(r.ago)
	monday := d.ago(2 * time.Hour).Truncate(week) // weeks since the zero Time, a Monday
	if r.weekly && d.ago(3*time.Hour).Before(monday) {
		at = at.Add(-2 * time.Hour)
	}
	return at
}
