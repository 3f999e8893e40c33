package insights

// lockForRuns conflicts with lockTables.
const lockForRuns = `LOCK TABLE recommendations, alerts IN ROW EXCLUSIVE MODE`
