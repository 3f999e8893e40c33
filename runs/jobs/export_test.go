package jobs

import "time"

// The statements whose cost must not depend on how many jobs, runs and accounts there are, with arguments that fit them.
var FlatStatements = map[string][]any{
	readSupply:      {[]string{"p1"}, 10},
	readSupplyOfAny: {nil, 10},
	claimable:       {nil},
	expiredLeases:   nil,
	purgeAnswersSQL: {2000, time.Now().Add(-MinAnswersKept)},
}

// Claims returns how many claims were served by transactions.
func (d *Dispatcher) Claims() uint64 { return d.claims.Stats().Inputs }
