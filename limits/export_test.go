package limits

import (
	"context"

	"aiv/auth"
)

// AdmitTogether counts one request of each key in one batch, which waits for locks for as long as the sessions of the pool allow.
func (l *Limiter) AdmitTogether(ctx context.Context, keys []auth.Hash) error {
	asked := make([]request, len(keys))
	for i, key := range keys {
		asked[i].key = key
	}
	_, err := l.admit(ctx, l.cfg.Pool, asked)
	return err
}
