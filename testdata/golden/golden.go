// Package golden contains the golden files, so that a compiled test needs no other file.
package golden

import "embed"

// Files are the golden files, the rows that the database has before them, and the script that makes the keys.
//
//go:embed setup.sh *.jsonl */*.txt
var Files embed.FS
