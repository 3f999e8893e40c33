package demo

import (
	"fmt"
	"time"
)

// A sampleRun is a run of the past. Its times are relative to the creation of the sample account. The jobs that are in none
// of the states below are queued, and the sample worker answers them.
type sampleRun struct {
	name string // in insights.jsonl

	ago         time.Duration // since its creation
	waited      time.Duration // from its creation to its start; 0: not started
	took        time.Duration // from its start to its end; 0: not ended
	what        series
	repetitions int64

	completed, failed, canceled int
}

// open reports whether the run is not final yet.
func (r *sampleRun) open() bool { return r.took == 0 }

// A series is what several runs measure repeatedly.
type series struct {
	models, questions         []string
	locale, country, language string
}

var (
	sport = series{
		models:    []string{"openai/gpt-5-search", "perplexity/sonar-pro", "google/gemini-2.5-pro"},
		questions: []string{"it-running-shoes", "it-city-bike"},
		locale:    "it-IT", country: "IT", language: "it",
	}
	software = series{
		models:    []string{"openai/gpt-5-search", "google/ai-overviews"},
		questions: []string{"en-crm-small", "en-invoice-software", "en-password-manager"},
		locale:    "en-US", country: "US", language: "en",
	}
	home = series{
		models:    []string{"mistral/le-chat", "perplexity/sonar"},
		questions: []string{"de-espresso-machine", "de-robot-vacuum", "de-mattress", "de-family-car"},
		locale:    "de-DE", country: "DE", language: "de",
	}
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// shoes is measured every week, in English.
var shoes = series{
	models:    []string{"openai/gpt-5-search", "perplexity/sonar-pro", "google/gemini-2.5-pro"},
	questions: []string{"en-running-shoes", "en-trail-shoes", "en-marathon-shoes", "en-wide-shoes", "en-kestrivo-shoes"},
	locale:    "en-US", country: "US", language: "en",
}

// scarpe is measured every day, in Italian.
var scarpe = series{
	models:    []string{"openai/gpt-5-search", "perplexity/sonar-pro", "google/gemini-2.5-pro"},
	questions: []string{"it-running-shoes"},
	locale:    "it-IT", country: "IT", language: "it",
}

// sampleRuns are the weekly and the daily runs, then runs in every state. The open ones are the last: work claims the jobs of one run only if no other
// has jobs to hand out.
var sampleRuns = append(append(weeklyRuns(), dailyRuns()...), []sampleRun{
	{name: "sport 1", ago: 27 * day, waited: 2 * time.Second, took: 9 * time.Minute, what: sport, repetitions: 3, completed: 18},
	{name: "software 1", ago: 25*day + 3*time.Hour, waited: 3 * time.Second, took: 14 * time.Minute, what: software, repetitions: 5, completed: 30},
	{name: "home 1", ago: 22*day + 5*time.Hour, waited: time.Second, took: 6 * time.Minute, what: home, repetitions: 2, completed: 16},
	{name: "sport 2", ago: 20 * day, waited: 2 * time.Second, took: 8 * time.Minute, what: sport, repetitions: 3, completed: 18},
	{name: "software 2", ago: 18*day + 3*time.Hour, waited: 4 * time.Second, took: 3 * time.Minute, what: software, repetitions: 5, failed: 30},
	{name: "software 3", ago: 18*day + 2*time.Hour, waited: 2 * time.Second, took: 15 * time.Minute, what: software, repetitions: 5, completed: 30},
	{name: "home 2", ago: 15*day + 5*time.Hour, took: 40 * time.Second, what: home, repetitions: 20, canceled: 160},
	{name: "home 3", ago: 15*day + 4*time.Hour, waited: 2 * time.Second, took: 7 * time.Minute, what: home, repetitions: 2, completed: 16},
	{name: "sport 3", ago: 13 * day, waited: 5 * time.Second, took: 11 * time.Minute, what: sport, repetitions: 3, completed: 14, failed: 4},
	{name: "software 4", ago: 11*day + 3*time.Hour, waited: 3 * time.Second, took: 13 * time.Minute, what: software, repetitions: 5, completed: 30},
	{name: "home 4", ago: 8*day + 5*time.Hour, waited: time.Second, took: 4 * time.Minute, what: home, repetitions: 2, completed: 7, canceled: 9},
	{name: "sport 4", ago: 6 * day, waited: 2 * time.Second, took: 9 * time.Minute, what: sport, repetitions: 3, completed: 18},
	{name: "software 5", ago: 4*day + 3*time.Hour, waited: 2 * time.Second, took: 16 * time.Minute, what: software, repetitions: 5, completed: 28, failed: 2},
	{name: "home 5", ago: day + 5*time.Hour, waited: time.Second, took: 7 * time.Minute, what: home, repetitions: 2, completed: 16},
	{name: "sport 5", ago: 8 * time.Minute, waited: 2 * time.Second, what: sport, repetitions: 3, completed: 9, failed: 1},
	{name: "software 6", ago: 3 * time.Minute, what: software, repetitions: 5},
	{name: "home 6", ago: 40 * time.Second, what: home, repetitions: 2},
}...)

// weeklyRuns returns twelve runs, oldest first.
func weeklyRuns() (all []sampleRun) {
	for n := range 12 {
		failed := n % 4 / 3 * 2
		all = append(all, sampleRun{name: fmt.Sprint("shoes ", n+1), ago: time.Duration(12-n)*week - 5*day, waited: 2 * time.Second,
			took: 12 * time.Minute, what: shoes, repetitions: 4, completed: 60 - failed, failed: failed})
	}
	return all
}

// dailyRuns returns six runs, oldest first. At the last one a provider was down.
func dailyRuns() (all []sampleRun) {
	for n := range 6 {
		failed := n / 5 * 6
		all = append(all, sampleRun{name: fmt.Sprint("scarpe ", n+1), ago: time.Duration(6-n)*day - 7*time.Hour, waited: 3 * time.Second,
			took: 4 * time.Minute, what: scarpe, repetitions: 6, completed: 18 - failed, failed: failed})
	}
	return all
}
