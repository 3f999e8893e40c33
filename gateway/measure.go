package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"aiv/gateway/problem"
	"aiv/insights/visibility"
	"aiv/store"
)

// measure responds with the page that read returns. read takes a connection for reads, and must end within their
// deadline and within maxMeasureTime.
func (g *Gateway) measure(x *exchange, r *http.Request, read func(context.Context, store.Querier) (page, error)) error {
	var p page
	// The response is sent after the turn has ended.
	err := g.inReads(x, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, g.measureTime)
		defer cancel()
		return g.read(ctx, x.admission.WALPosition, func(ctx context.Context, db store.Querier) (err error) {
			p, err = read(ctx, db)
			return err
		})
	})
	if err != nil {
		return err
	}
	return g.sendPage(x, r, p)
}

// maxMeasureTime bounds a read of metrics or sources.
const maxMeasureTime = 2 * time.Second

// answerFilters are the parameters, besides times, by which all routes of the measurement select answers. at returns
// the Filter in a query.
func answerFilters[F any](at func(*F) *visibility.Filter) []filter[F] {
	return []filter[F]{
		formFilter("model_id", catalogID, func(f *F) *string { return &at(f).Model }),
		formFilter("question_id", catalogID, func(f *F) *string { return &at(f).Question }),
		textFilter("topic", func(f *F) *string { return &at(f).Topic }),
		textFilter("tag", func(f *F) *string { return &at(f).Tag }),
		formFilter("country", country, func(f *F) *string { return &at(f).Country }),
		formFilter("language", language, func(f *F) *string { return &at(f).Language }),
		formFilter("measurement_type", measurementType, func(f *F) *string { return &at(f).MeasurementType }),
		boolFilter("branded", func(f *F) **bool { return &at(f).Branded }),
	}
}

// brandFilter accepts the id of a brand.
func brandFilter[F any](at func(*F) **store.ID) filter[F] {
	return filter[F]{"brand_id", "the id of a brand", func(f *F, v string) bool {
		id, err := store.ParseID("brand", v)
		*at(f) = &id
		return err == nil
	}}
}

// readFilters reads the parameters of a route.
func readFilters[F any](x *exchange, filters []filter[F], to *F) problem.Faults {
	faults := x.params.Faults(x.route.input.query)
	for _, p := range x.params {
		if p.Fault != "" {
			continue
		}
		// Any other parameter is unknown, and reported already, or is read by the route itself, such as limit and
		// cursor.
		if i := slices.IndexFunc(filters, func(f filter[F]) bool { return f.name == p.Name }); i >= 0 {
			if wrong := filters[i].read(to, p.Value); wrong != "" {
				faults.AddParameter(p.Name, wrong)
			}
		}
	}
	return faults
}

// namesOf returns the parameters that the filters read, for the table of routes.
func namesOf[F any](filters []filter[F]) (names []string) {
	for i := range filters {
		names = append(names, filters[i].name)
	}
	return names
}

// invalidParameters reports faults of parameters, with the number of parameters that have one.
func invalidParameters(faults problem.Faults) error {
	names := map[string]bool{} // a parameter may have several faults
	for _, f := range faults {
		names[*f.Parameter] = true
	}
	detail := "1 parameter is not valid."
	if n := len(names); n > 1 {
		detail = fmt.Sprintf("%d parameters are not valid.", n)
	}
	return &problem.Problem{Code: problem.InvalidParameter, Detail: detail, Errors: faults}
}
