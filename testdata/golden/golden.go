// Package golden contains the golden files, so that a compiled test needs no other file.
package golden

import "embed"

// Files are the golden files and the rows that the database has before them.
//
//go:embed *.jsonl */*.txt
var Files embed.FS
