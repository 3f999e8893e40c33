package limits

import (
	"context"

	"aiv/auth"
)

// AdmitTogether counts one request of each key in one batch, which waits for locks for as long as the sessions of the
// pool allow.
func (l *Limiter) AdmitTogether(ctx context.Context, keys []auth.Hash) ([]*Admission, error) {
	asked := make([]request, len(keys))
	for i, key := range keys {
		asked[i].key = key
	}
	return l.admit(ctx, l.cfg.Pool, asked)
}
