package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestLostConnectionIsUncertain: an import whose connection was lost, perhaps after COMMIT, does not say that nothing was
// imported. One that was refused does.
func TestLostConnectionIsUncertain(t *testing.T) {
	t.Parallel()
	_, notConnected := pgconn.Connect(t.Context(), "postgres://127.0.0.1:1/aiv")
	for _, test := range []struct {
		err  error
		lost bool
	}{
		{errors.New("conn closed"), true},
		{fmt.Errorf("commit: %w", io.ErrUnexpectedEOF), true},
		{&pgconn.PgError{Code: "57P01", Message: "terminating connection"}, false},
		{notConnected, false},
		{context.Canceled, false},
		{errors.New("line 1: kind must be one of recommendation, alert"), false},
	} {
		got := uncertain(notImported(test.err)).Error()
		if strings.Contains(got, "aiv audit list") != test.lost || strings.Contains(got, "nothing was imported") == test.lost {
			t.Errorf("%v: %s", test.err, got)
		}
	}
}
