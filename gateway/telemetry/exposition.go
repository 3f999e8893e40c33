package telemetry

import (
	"strconv"
	"strings"
)

// An Exposition is a page of metrics in Prometheus' [text format], version 0.0.4.
//
// [text format]: https://prometheus.io/docs/instrumenting/exposition_formats/
type Exposition struct {
	page   []byte
	family string // the name of the current family, which Sample repeats
}

// String returns the page.
func (e *Exposition) String() string { return string(e.page) }

// Family begins a family of samples. Its kind is counter, gauge or histogram.
func (e *Exposition) Family(name, kind, help string) {
	e.family = name
	e.page = append(e.page, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+kind+"\n"...)
}

// Counter writes a family of one counter without labels.
func (e *Exposition) Counter(name, help string, value float64) {
	e.Family(name, "counter", help)
	e.Sample(value)
}

// Gauge writes a family of one gauge without labels.
func (e *Exposition) Gauge(name, help string, value float64) {
	e.Family(name, "gauge", help)
	e.Sample(value)
}

// Sample writes a sample of the family, with its labels, each a name and a value.
func (e *Exposition) Sample(value float64, labels ...string) { e.sample("", value, labels...) }

// A Histogram has the number of values in each bucket: Counts[i] values were at most Bounds[i] and above the bound
// before; the last of Counts is for values above all bounds. Sum is the sum of the values.
type Histogram struct {
	Bounds []float64
	Counts []uint64
	Sum    float64
}

// Histogram writes the samples of a histogram's family for one set of labels.
func (e *Exposition) Histogram(h Histogram, labels ...string) {
	total := uint64(0)
	// The label le is the upper bound. The buckets of the format are cumulative, in contrast to Counts.
	labels = append(labels, "le", "")
	for i, n := range h.Counts {
		total += n
		bound := "+Inf"
		if i < len(h.Bounds) {
			bound = strconv.FormatFloat(h.Bounds[i], 'g', -1, 64)
		}
		labels[len(labels)-1] = bound
		e.sample("_bucket", float64(total), labels...)
	}
	// The sum and the count have no bound.
	labels = labels[:len(labels)-2]
	e.sample("_sum", h.Sum, labels...)
	e.sample("_count", float64(total), labels...)
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// sample appends a line: the name of the family with a suffix, the labels in pairs of name and value, and the value.
func (e *Exposition) sample(suffix string, value float64, labels ...string) {
	b := append(append(e.page, e.family...), suffix...)
	for i := 0; i < len(labels); i += 2 {
		// A brace precedes the first label, and a comma each other one.
		b = append(b, "{,"[min(i, 1)])
		b = append(append(append(b, labels[i]...), `="`...), labelEscapes.Replace(labels[i+1])...)
		b = append(b, '"')
	}
	if len(labels) > 0 {
		b = append(b, '}')
	}
	e.page = append(strconv.AppendFloat(append(b, ' '), value, 'g', -1, 64), '\n')
}
