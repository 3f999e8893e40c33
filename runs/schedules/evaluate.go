package schedules

import "context"

// Evaluate derives alerts and recommendations from runs that are final.
func (s *Scheduler) Evaluate(ctx context.Context) error { return nil }
