package service

import "strings"

// normalForm stands in for the normal form of AIVM-1.0.
// MERGE: match.NormalForm
func normalForm(text string) string { return strings.ToLower(strings.TrimSpace(text)) }
