// Package visibility counts what answers show of brands, and computes metrics from the counts: part 2 of the
// methodology AIVM-1.0.
//
// It owns the tables visibility_facts, visibility_backlog and visibility_recounts, and the column jobs_counted of
// measurement_runs. It reads measurement_runs of package runs, the brands of package brands and the questions of
// package catalog. METHODOLOGY.md in package insights explains the numbers to customers. Package gateway calls its
// reads. Command aiv dispatch calls a [Counter]: in each transaction that settles jobs, and in tasks that recount and
// merge.
//
// # Facts
//
// A [Fact] is kept for each job that ended with an answer or an error. Facts are stored in chunks: a row of
// visibility_facts has the facts of jobs of one run that were counted together, at one revision of the account's
// brands. Besides the facts it has their sums by model and question, in the columns cells and sources. Everything that
// metrics show can be added up from these sums, because filters and groups depend only on the run, the model and the
// question. So metrics over a million answers read a few thousand rows.
//
// A settlement inserts chunks and changes none, so it waits for no other transaction. Small chunks of a run are merged
// later.
//
// # Revisions
//
// A change of a brand increases the account's revision. The chunks of older revisions are stale: their answers are
// recounted, and not counted until then. A [Counter] replaces stale chunks by chunks of the present revision, a few in
// each transaction, so each answer is counted once or, in a chunk that is stale, not at all. Chunks whose answers were
// deleted because of their age are kept as they are; their answers are frozen.
package visibility

import (
	"aiv/insights/brands/match"
	"aiv/store"
)

// A Job has ended, with an answer or an error.
type Job struct {
	Account, Run store.ID
	Ordinal      int32   // of the job in its run, from 1
	Answer       *Answer // nil: it failed

	Prepared *Prepared // what Prepare returned for the job; used if the brands have not changed since; nil: nothing
}

// An Answer is what is counted of a job's answer.
type Answer struct {
	Text      string
	Citations []match.Citation
	Version   *string // the served model
	Searched  *bool   // whether the model searched; nil: not known
	Truncated bool
}

// Cite adds a citation. A nil title is not known.
func (a *Answer) Cite(url string, title *string) {
	c := match.Citation{URL: url}
	if title != nil {
		c.Title = *title
	}
	a.Citations = append(a.Citations, c)
}
