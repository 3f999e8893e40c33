package runs

import (
	"reflect"
	"testing"
)

// TestHashOfEachMember: requests that differ in any member have different hashes.
func TestHashOfEachMember(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Proposal]()) {
		if f.Name == "Orderer" || f.Name == "CatalogRevision" {
			continue // not of the request
		}
		var p Proposal
		switch v := reflect.ValueOf(&p).Elem().FieldByIndex(f.Index); v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Int64:
			v.SetInt(1)
		default:
			v.Set(reflect.ValueOf([]string{"x"}))
		}
		if p.hash() == new(Proposal).hash() {
			t.Errorf("the hash leaves out %s", f.Name)
		}
	}
}
