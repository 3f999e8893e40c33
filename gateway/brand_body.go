package gateway

import (
	"errors"
	"net/http"
	"strconv"

	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/insights/brands"
	"aiv/store/strictjson"
)

var (
	// The members of a new brand, of a change and of a preview. A preview describes a brand that is not saved, and may
	// name the brand that it replaces and a run.
	newBrandMembers    = bodyMembers{[]string{"kind", "name"}, []string{"aliases", "domains", "exclude", "match_case"}}
	brandChangeMembers = bodyMembers{nil, []string{"kind", "name", "aliases", "domains", "exclude", "match_case", "status"}}
	brandDraftMembers  = bodyMembers{newBrandMembers.required, append([]string{"brand_id", "run_id"}, newBrandMembers.optional...)}
)

// A brandBody is a body that describes a brand, and its location.
type brandBody struct {
	// Object has the members as sent, and Change the values read from them.
	request.Object
	brands.Change
}

// readBrandBody reads the members of a brand that a client sets. It reports faults of the texts together with faults of
// the types. Which names are valid depends on match_case: matchCase, if not nil, returns the match_case of the stored
// brand. It is called only if a body with names has faults; otherwise brands.Update checks the names.
func readBrandBody(x *exchange, r *http.Request, members bodyMembers, matchCase func() bool) (*brandBody, error) {
	body, at, err := bodyOf(x, r)
	if err != nil {
		return nil, err
	}
	var f problem.Faults
	b := &brandBody{Object: request.NewOpenObject(body, at, &f, members.required, members.optional)}
	b.Kind = b.OneOf("kind", brands.Kinds)
	if b.Member("name") != nil {
		b.Name = new(b.Text("name"))
	}
	b.Aliases, b.Domains, b.Exclude = b.texts("aliases"), b.texts("domains"), b.texts("exclude")
	if b.Member("match_case") != nil {
		b.MatchCase = new(b.Bool("match_case"))
	} else if len(members.required) > 0 {
		// The default of a new brand. In a change, nil leaves the stored value.
		b.MatchCase = new(false)
	}
	// Only changes have a status, and only previews have ids.
	for _, name := range members.optional {
		switch name {
		case "status":
			b.Status = b.OneOf(name, brands.Statuses)
		case "brand_id", "run_id":
			b.checkID(name)
		}
	}
	checked := b.Change // b keeps the domains as they were sent: their saved forms may have faults of their own
	// Check replaces the domains of checked by their saved forms.
	faults := checked.Check()
	if len(f)+len(faults) == 0 {
		b.Change = checked
		return b, nil
	}
	if hasNames := b.Name != nil || b.Aliases != nil || b.Exclude != nil; hasNames && b.MatchCase == nil && matchCase != nil {
		// The names were checked as if match_case were true, and are checked again with the stored value.
		b.MatchCase = new(matchCase())
		faults = b.Check()
	}
	b.addFaults(&f, faults)
	return nil, invalidBrand(f)
}

// texts reads an optional list of strings. It returns nil only if the list is missing.
func (b *brandBody) texts(name string) []string {
	if b.Member(name) == nil {
		return nil
	}
	texts := []string{}
	for i, item := range b.Array(name, "texts", 0, brands.MaxTexts) {
		if item.Kind != strictjson.KindString {
			b.Fault(name+"/"+strconv.Itoa(i), "must be a string, not "+item.Describe())
		}
		texts = append(texts, item.Text)
	}
	return texts
}

// checkID checks the type of a member that is an id, null or missing.
func (b *brandBody) checkID(name string) {
	if v := b.Member(name); v != nil && v.Kind != strictjson.KindString && v.Kind != strictjson.KindNull {
		b.Fault(name, "must be a string or null, not "+v.Describe())
	}
}

// addFaults reports faults of texts, except where a fault of their type is reported.
func (b *brandBody) addFaults(to *problem.Faults, faults []brands.Fault) {
	for _, fault := range faults {
		to.AddUnlessAt(b.At.String()+"/"+fault.At, fault.Detail)
	}
}

func invalidBrand(f problem.Faults) error {
	return &problem.Problem{Code: problem.InvalidRequest, Detail: "The body is not a valid brand.", Errors: f}
}

// refused returns the problem for an error of package brands that is about members of the body, and other errors as
// they are.
func (b *brandBody) refused(err error) error {
	// The members of the change are not valid together with the members that are stored.
	if e, ok := errors.AsType[*brands.InvalidError](err); ok {
		var f problem.Faults
		b.addFaults(&f, e.Faults)
		return invalidBrand(f)
	}
	e, ok := errors.AsType[*brands.ConflictError](err)
	if !ok {
		return err
	}
	// The first conflict names the brand that the client may want to change instead.
	p := &problem.Problem{Code: problem.BrandConflict, Detail: "Another active brand has one of these names or domains.",
		ExistingID: e.Conflicts[0].Other.Text("brand")}
	for i := range e.Conflicts {
		p.Errors.Add(b.At.String()+"/"+e.Conflicts[i].At, e.Conflicts[i].Detail())
	}
	return p
}
