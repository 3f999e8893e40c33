package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/store"
)

// refusal checks the answer that an error of reading a request is: one of the codes, in a document that can be sent.
func refusal(t *testing.T, err error, codes ...string) {
	t.Helper()
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok || !slices.Contains(codes, p.Code) {
		t.Fatalf("got %v, want a problem of %v", err, codes)
	}
	if !utf8.ValidString(p.Detail) || len(p.Errors) > problem.MaxFaults {
		t.Errorf("the detail is %q, the faults are %d", p.Detail, len(p.Errors))
	}
}

// usualEnvelope is the body of a typical POST {base_url}.
const usualEnvelope = `{"path":"/v1/runs","method":"POST","body":{"model_ids":["model-01"],` +
	`"question_ids":["question-001","question-002"],"repetitions":3,"measurement_type":"grounded",` +
	`"locale":"it-IT","country":"IT","language":"it"}}`

// FuzzEnvelope holds the envelope against encoding/json: what is taken, both read alike.
func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{
		usualEnvelope, ``, `{}`, `[]`, `{"path":"/v1/me","method":"GET","body":{}}`, `{"path":"/v1/runs?limit=1","method":"POST","body":{}}`,
		`{"path":1,"method":null,"body":[]}`, `{"path":"","method":"","body":{},"x":0}`, `{"Path":"/v1/me","method":"POST","body":{}}`,
		`{"path":"/v1/runs?%zz","method":"POST","body":{}}`, `{"path":"/v1/runs","path":"/v1/me","method":"POST","body":{}}`,
		"{\"path\":\"\xff\",\"method\":\"POST\",\"body\":{}}", `{"path":"\ud800","method":"POST","body":{}}`, `{"~/%":0}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequest("POST", Base, bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		x := &exchange{ResponseWriter: httptest.NewRecorder(), admission: someAdmission,
			bodies: &share{max: maxBodies, maxOfOne: maxBodiesOfOne}}
		got, err := readEnvelope(x, r)
		if err != nil {
			refusal(t, err, problem.InvalidJSON, problem.InvalidEnvelope, problem.InvalidParameter, problem.MethodNotAllowed, problem.BodyTooLarge)
			x.fail(err)
			return
		}
		var want struct {
			Path, Method string
			Body         map[string]any
		}
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(&want); err != nil || want.Body == nil {
			t.Fatalf("%s is taken; encoding/json says %v", body, err)
		}
		if path, _, _ := strings.Cut(want.Path, "?"); got.path != path || got.method != want.Method || len(got.envelope.Members) != len(want.Body) {
			t.Errorf("%s is read as %+v, by encoding/json as %+v", body, got, want)
		}
	})
}

// FuzzQuery holds the parameters of a read against net/url: what is taken, both read alike, and read again it is the
// same.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"path=/v1/me", "path=/v1/runs&limit=20", "path=%2Fv1%2Fruns%3Flimit%3D20", "path=/v1/runs?limit=1&limit=2", "path=/v1/runs%3Fa%3D%2526",
		"path=", "", "path=a&path=b", "path=%zz", "a;b=c", "&&=&=a&path=x", "path=/v1/me%00", "path=%ff", "path=/v1/runs?a=1%26a=2&a=3", "path=x?path=y",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		p := request.ReadParameters(query)
		if len(p) <= request.MaxParameters && !slices.ContainsFunc(p, func(q request.Parameter) bool { return q.Fault != "" }) {
			want, err := url.ParseQuery(query)
			if err != nil {
				t.Fatalf("%q is taken; net/url says %v", query, err)
			}
			for name, values := range want {
				if got := p.Get(name); !slices.Equal(got, values) {
					t.Errorf("%q: %q is read as %q, by net/url as %q", query, name, got, values)
				}
			}
			if again := request.ReadParameters(p.Encode()); !slices.Equal(again, p) {
				t.Errorf("%q is read as %q, and that again as %q", query, p, again)
			}
		}
		x := &exchange{ResponseWriter: httptest.NewRecorder()}
		r := httptest.NewRequest("GET", Base, nil)
		r.URL.RawQuery = query
		l, err := readQuery(r)
		if err != nil {
			refusal(t, err, problem.InvalidParameter)
			x.fail(err)
		} else if strings.Contains(l.path, "?") {
			t.Errorf("%q: the path is %q", query, l.path)
		}
	})
}

// FuzzPath sends logical paths to the routes as a credential that may do nothing: no path is taken for another one,
// none is redirected, and only one of the table is found.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{
		"/v1/me", "/v1/runs", "/v1/runs/", "/v1//runs", "/v1/../v1/me", "/v1/runs/run_x", "/v1/runs/a/b", "/v1/runs/a/cancel", "/v1/runs//cancel", "/v1/runs/../cancel", "/v1/runs/%2e%2e", "", "/", "v1/me", "/v1/me\x00",
		"/v1/runs/..", "/V1/me", "/v1/me?", "/v1/runs/{id}", "/v1/catalog", "http://x/v1/me", "//x/v1/me", "/v1/runs/\xff", "/v1/me/.",
	} {
		f.Add("GET", seed)
		f.Add("POST", seed)
	}
	f.Add("CONNECT", "/v1/me")
	f.Add("", "/v1/me")
	g := New(Config{})
	f.Fuzz(func(t *testing.T, method, path string) {
		w := httptest.NewRecorder()
		x := &exchange{ResponseWriter: w, admission: someAdmission}
		x.logicalRequest = logicalRequest{method: method, path: path}
		g.dispatch(x, httptest.NewRequest("GET", Base, nil))
		known := slices.ContainsFunc(routes, func(r route) bool { return matches(r.path, path) })
		switch {
		case !known && w.Code != 404, known && !slices.Contains([]int{200, 403, 405}, w.Code), w.Code == 200 && path != "/v1/me":
			t.Errorf("%q %q: got %d %s", method, path, w.Code, w.Body)
		case !json.Valid(w.Body.Bytes()):
			t.Errorf("%q %q: got %q", method, path, w.Body)
		}
	})
}

// FuzzFilters gives every filter of every list any value: accepted values are valid in the database.
func FuzzFilters(f *testing.F) {
	for _, seed := range []string{
		"", "queued", "queued,running", "queued,queued", ",", "IT", "it", "\x00", "\xff", "2026-01-31T00:00:00Z", "2026-01-31T00:00:00.9999999Z",
		"9999-12-31T23:59:59.9999999Z", "0001-01-01T00:00:00+23:59", "0000-01-01T00:00:00Z", "2026-01-31t00:00:00z", "true", "run_01k3s4x0a1fvt8s9w2y7b6c5d4", "IT\n",
		"high", "m/x:y", strings.Repeat("é", 128), strings.Repeat("é", 129),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		tryFilters(t, runList.filters, value)
		tryFilters(t, resultList.filters, value)
		tryFilters(t, modelList.filters, value)
		tryFilters(t, questionList.filters, value)
		tryFilters(t, recommendationList.filters, value)
		tryFilters(t, alertList.filters, value)
		// A time that is taken is one that PostgreSQL keeps, and is not before the one sent.
		if sent, err := time.Parse(time.RFC3339Nano, value); err == nil {
			var at *time.Time
			f := timeFilter("t", func(to **time.Time) **time.Time { return to })
			if f.read(&at, value) == "" && (at.Nanosecond()%1000 != 0 || at.Before(sent) || at.Sub(sent) >= time.Microsecond) {
				t.Errorf("%q is read as %v", value, at)
			}
		}
	})
}

func tryFilters[F any](t *testing.T, filters []filter[F], value string) {
	t.Helper()
	for _, f := range filters {
		var to F
		wrong := f.read(&to, value)
		if f.name == "id" { // accepts any text, and keeps the ids only
			continue
		}
		taken := wrong == "" && (value == "" || !utf8.ValidString(value) || strings.ContainsRune(value, 0))
		if taken || wrong != "" && !strings.HasPrefix(wrong, "must be ") {
			t.Errorf("%s says %q of %q", f.name, wrong, value)
		}
	}
}

// FuzzCursor: a position is read from its cursor only, not from another text, list or secret.
func FuzzCursor(f *testing.F) {
	f.Add("GET /v1/runs\nacct", "", int64(0), []byte("0123456789abcdef"), "AQ")
	f.Add("", "model/x", int64(1795223100000000), []byte{}, "")
	f.Add("b", "\x00\xff", int64(-1), bytes.Repeat([]byte{255}, 16), strings.Repeat("A", 512))
	g, another := New(Config{CursorSecret: []byte("secret")}), New(Config{CursorSecret: []byte("another")})
	f.Fuzz(func(t *testing.T, bound, text string, micro int64, id []byte, other string) {
		var place store.Position
		copy(place.ID[:], id)
		place.Time = time.UnixMicro(micro)
		for _, byText := range []bool{false, true} {
			if byText {
				place = store.Position{Text: text}
			}
			cursor := g.seal(bound, place, byText)
			got, ok := g.open(bound, cursor, byText)
			if len(cursor) <= maxCursor && (!ok || !got.Time.Equal(place.Time) || got.ID != place.ID || got.Text != place.Text) {
				t.Errorf("%+v comes back as %+v", place, got)
			}
			_, ofList := g.open(bound+"x", cursor, byText)
			if _, ofSecret := another.open(bound, cursor, byText); ofList || ofSecret {
				t.Errorf("a cursor of another list (%t) or secret (%t) is accepted", ofList, ofSecret)
			}
			if place, ok := g.open(bound, other, byText); ok && g.seal(bound, *place, byText) != other {
				t.Errorf("%q is accepted and was not sealed", other)
			}
			// Others that decode to the same bytes are not accepted either.
			changes := []string{cursor + "\n", "\n" + cursor, cursor[:4] + "\r\n" + cursor[4:], cursor + "=", cursor + " "}
			for i := range min(len(cursor), 8) { // the last characters have unused bits
				changed := []byte(cursor)
				changed[len(changed)-1-i] ^= 1
				changes = append(changes, string(changed))
			}
			for _, changed := range changes {
				if _, ok := g.open(bound, changed, byText); ok {
					t.Errorf("%q is taken for %q", changed, cursor)
				}
			}
		}
	})
}
