package schema

import (
	"iter"
	"regexp"
	"strings"
)

// statements yields where each statement of a migration begins and ends. They are executed one by one, because Citus
// refuses a change of a distributed table that is sent with another statement.
func statements(sql string) iter.Seq2[int, int] {
	return func(yield func(begin, end int) bool) {
		begin := 0
		for i := 0; i < len(sql); {
			if sql[i] == ';' {
				if !yield(begin, i+1) {
					return
				}
				begin = i + 1
			}
			i += max(1, len(opaque(sql[i:])))
		}
		if strings.TrimSpace(sql[begin:]) != "" {
			yield(begin, len(sql))
		}
	}
}

// opaque returns the comment or string with which sql begins, or "". A quote in a string is written twice, so that it
// ends one string and begins another.
func opaque(sql string) string {
	var begin, end string
	switch {
	case strings.HasPrefix(sql, "--"):
		begin, end = "--", "\n"
	case sql[0] == '\'':
		begin, end = "'", "'"
	default:
		begin = dollarQuote.FindString(sql)
		end = begin
	}
	if begin == "" {
		return ""
	}
	_, rest, _ := strings.Cut(sql[len(begin):], end)
	return sql[:len(sql)-len(rest)]
}

var dollarQuote = regexp.MustCompile(`^\$\w*\$`)
