package request

import (
	"net/http"
	"testing"
)

func TestBearerTokenIsRead(t *testing.T) {
	for _, test := range []struct {
		sent  []string
		token string
		ok    bool
	}{
		{nil, "", true},
		{[]string{"Bearer x"}, "x", true},
		{[]string{"bEARER  x y"}, "x y", true},
		{[]string{"Bearer"}, "", true},
		{[]string{"Bearer "}, "", true},
		{[]string{"Basic x"}, "", true},
		{[]string{"Bearer x", "Bearer x"}, "", false},
	} {
		if token, ok := Bearer(http.Header{"Authorization": test.sent}); token != test.token || ok != test.ok {
			t.Errorf("%q: got %q, %v, want %q, %v", test.sent, token, ok, test.token, test.ok)
		}
	}
}
