package schema

import (
	"fmt"
	"slices"
	"strings"
)

// A Service is a long-running command that has its own database role.
type Service string

// The services whose privileges a role can be granted.
const (
	Serve    Service = "serve"
	Dispatch Service = "dispatch"
)

// Privileges are what a service may do with a table, a function or a sequence. They are all that it needs: its role can
// neither change the definition of a table, a key, a limit or a plan, nor read the audit log.
type Privileges []Privilege

// A Privilege is one of GRANT. Its zero value is none.
type Privilege struct {
	name    string
	columns []string // nil: all
}

// The privileges on tables, functions (Execute) and sequences (Usage).
var (
	Select  = Privilege{name: "SELECT"}
	Insert  = Privilege{name: "INSERT"}
	Update  = Privilege{name: "UPDATE"}
	Delete  = Privilege{name: "DELETE"}
	Execute = Privilege{name: "EXECUTE"}
	Usage   = Privilege{name: "USAGE"}
)

// UpdateOf is the privilege to update some columns only. Without columns, it grants UPDATE on the other servers of a
// cluster and nothing on the coordinator: Citus locks a reference table there for an INSERT.
func UpdateOf(columns ...string) Privilege {
	return Privilege{"UPDATE", append([]string{}, columns...)}
}

// SelectOf is the privilege to read some columns only.
func SelectOf(columns ...string) Privilege { return Privilege{"SELECT", columns} }

// whole reports whether p is on all columns.
func (p Privilege) whole() bool { return p.columns == nil }

// String returns the privilege as in GRANT.
func (p Privilege) String() string {
	if p.whole() {
		return p.name
	}
	return fmt.Sprintf("%s (%s)", p.name, strings.Join(p.columns, ", "))
}

// A grant is the privileges of a service on an object: a table, or a name after FUNCTION or SEQUENCE.
type grant struct {
	object     string
	privileges Privileges
}

// grants returns all privileges of a service.
func (s Service) grants(all []Capability, onCitus bool) (grants []grant) {
	add := func(object string, serve, dispatch Privileges) {
		g := grant{object, serve}
		if s == Dispatch {
			g.privileges = dispatch
		}
		// What a service may not use at all has no grant.
		if len(g.privileges) > 0 {
			grants = append(grants, g)
		}
	}
	for _, c := range all {
		for _, t := range c.Tables {
			if onCitus {
				t.Serve = slices.Concat(t.Serve, t.ServeOnCitus)
				t.Dispatch = slices.Concat(t.Dispatch, t.DispatchOnCitus)
			}
			add(t.Name, t.Serve, t.Dispatch)
		}
		for _, f := range c.Functions {
			add("FUNCTION "+f.Name, f.Serve, f.Dispatch)
		}
		for _, q := range c.Sequences {
			add("SEQUENCE "+q.Name, q.Serve, q.Dispatch)
		}
	}
	return grants
}
