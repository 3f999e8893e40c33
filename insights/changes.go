package insights

// Changes are what an evaluation of a run has changed.
type Changes struct {
	Alerts          []Changed
	Recommendations []Changed
}

// Changed is an alert or a recommendation of a type that was opened, resolved, suggested or done.
type Changed struct{ Type, Change string }
