// Package jsonl reads JSON Lines files that an operator imports: each line is one object of strict JSON, whose members
// are read by name and type. It collects the errors of all lines, so that one import reports everything that is wrong
// with a file. It also merges the rows of a file into a table. It owns no tables; catalog and insights call it.
//
// https://jsonlines.org
package jsonl
