package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A story reads the sample account of aiv demo by the API.
type story struct {
	t         *testing.T
	base, key string
	brands    map[string]string // ids, by name
	weekly    []storyRun        // the runs of three series, oldest first
}

type storyRun struct {
	ID        string
	CreatedAt time.Time `json:"created_at"`
	Status    string
	Country   string
	ModelIDs  []string `json:"model_ids"`
	Questions []string `json:"question_ids"`
}

type storyRate struct {
	Value     *float64
	Count, Of int
	LowSample bool `json:"low_sample"`
}

type storyMetrics struct {
	Answers struct{ OK, Failed int }
	Models  []struct {
		ID      string  `json:"model_id"`
		Version *string `json:"model_version"`
	}
	Questions int
	Data      []struct {
		Group struct {
			Model   string `json:"model_id"`
			Week    string
			Topic   string
			Country string
		}
		Brand    string    `json:"brand_name"`
		Mention  storyRate `json:"mention_rate"`
		Citation storyRate `json:"citation_rate"`
	}
}

// get decodes the response of a route. parameters are names and values in turn.
func (s *story) get(v any, path string, parameters ...string) {
	s.t.Helper()
	values := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		values.Set(parameters[i], parameters[i+1])
	}
	a := (&process{base: s.base}).get(s.t, path+"?"+values.Encode(), s.key)
	if a.status != 200 || json.Unmarshal([]byte(a.body), v) != nil {
		s.t.Fatalf("%s %v: %d %s", path, parameters, a.status, a.body)
	}
}

func (s *story) metrics(parameters ...string) (m storyMetrics) {
	s.t.Helper()
	s.get(&m, "/v1/metrics", parameters...)
	return m
}

// between returns the window from the runs of a week to those of another week, both included.
func (s *story) between(first, last int) (from, to string) {
	return s.weekly[3*first-3].CreatedAt.Add(-time.Minute).Format(time.RFC3339), s.weekly[3*last-1].CreatedAt.Add(time.Minute).Format(time.RFC3339)
}

// testStory: the routes of the API tell what happened to the sample account in twelve weeks. text is what aiv demo has
// printed. The printed commands add runs and brands to the account, so the test precedes them.
func testStory(t *testing.T, text string) {
	s := &story{t: t, base: exported(text, "BASE"), key: exported(text, "KEY"), brands: make(map[string]string)}
	if want := "\n  report     " + s.base + "/report "; !strings.Contains(text, want) {
		t.Errorf("the instructions lack %q", want)
	}
	for _, part := range []struct {
		name string
		test func(*story, *testing.T)
	}{
		{"brands", (*story).testBrands}, {"history", (*story).testHistory}, {"gain and drop", (*story).testGainAndDrop},
		{"new competitor", (*story).testNewCompetitor}, {"low sample", (*story).testLowSample}, {"outage", (*story).testOutage},
		{"sources", (*story).testSources}, {"alerts", (*story).testAlerts},
	} {
		t.Run(part.name, func(t *testing.T) { s.t = t; part.test(s, t) })
	}
}

// exported returns the value of a variable that the printed commands set.
func exported(text, name string) string {
	_, rest, _ := strings.Cut(text, "export "+name+"=")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

func (s *story) testBrands(t *testing.T) {
	var list struct {
		Data []struct {
			ID, Kind, Name            string
			Aliases, Domains, Exclude []string
			MatchCase                 bool `json:"match_case"`
		}
	}
	s.get(&list, "/v1/brands")
	own, strict := 0, 0
	for _, b := range list.Data {
		s.brands[b.Name] = b.ID
		if b.Kind == "own" && b.Name == "Fernmark" && len(b.Aliases) > 0 && slices.ContainsFunc(b.Domains, func(d string) bool { return strings.Contains(d, "/") }) {
			own++
		}
		if b.Kind == "competitor" && b.MatchCase && len(b.Exclude) > 0 {
			strict++
		}
		for _, d := range b.Domains {
			host, _, _ := strings.Cut(d, "/")
			if !slices.ContainsFunc([]string{".example.com", ".example.org", ".example.net"}, func(suffix string) bool { return strings.HasSuffix(host, suffix) }) {
				t.Errorf("%s has the domain %s", b.Name, d)
			}
		}
	}
	if len(list.Data) != 5 || own != 1 || strict != 1 {
		t.Errorf("%d brands, %d own, %d with match_case and an excluded phrase; want 5, 1 and 1", len(list.Data), own, strict)
	}
}

func (s *story) testHistory(t *testing.T) {
	var list struct{ Data []storyRun }
	s.get(&list, "/v1/runs", "limit", "100")
	slices.SortFunc(list.Data, func(a, b storyRun) int { return a.CreatedAt.Compare(b.CreatedAt) })
	series := make(map[string]int)
	for _, r := range list.Data {
		if !slices.Contains([]string{"completed", "partial", "failed"}, r.Status) || len(s.weekly) == 36 {
			continue
		}
		s.weekly = append(s.weekly, r)
		series[r.Country+" "+strings.Join(r.Questions, " ")]++
	}
	if diff := cmp.Diff(map[string]int{
		"US en-running-shoes en-trail-shoes en-marathon-shoes en-wide-shoes en-fernmark-shoes": 12,
		"IT it-running-shoes it-hiking-boots":                                                  12,
		"US en-hiking-boots en-winter-boots":                                                   12,
	}, series); diff != "" {
		t.Fatalf("weekly runs by series (-want +got):\n%s", diff)
	}

	from, to := s.between(1, 12)
	m := s.metrics("from", from, "to", to, "group_by", "topic,country", "brand_id", s.brands["Fernmark"])
	if m.Answers.OK < 1200 || m.Answers.OK > 1800 {
		t.Errorf("%d answers are counted, want about 1,500", m.Answers.OK)
	}
	var groups []string
	for _, row := range m.Data {
		groups = append(groups, row.Group.Topic+" "+row.Group.Country)
	}
	if diff := cmp.Diff([]string{"outdoor IT", "outdoor US", "sport IT", "sport US"}, groups); diff != "" {
		t.Errorf("topics and countries (-want +got):\n%s", diff)
	}
	versions := make(map[string]int)
	for _, served := range m.Models {
		versions[served.ID]++
	}
	if diff := cmp.Diff(map[string]int{
		"openai/gpt-5-search": 1, "perplexity/sonar-pro": 1, "google/gemini-2.5-pro": 2, "mistral/le-chat": 1}, versions); diff != "" {
		t.Errorf("served versions by model (-want +got):\n%s", diff)
	}
	if branded := s.metrics("branded", "true"); branded.Questions != 1 || branded.Answers.OK == 0 {
		t.Errorf("%d branded questions with %d answers, want 1", branded.Questions, branded.Answers.OK)
	}
}

// testGainAndDrop compares the halves of the twelve weeks that the report shows.
func (s *story) testGainAndDrop(t *testing.T) {
	monday := s.weekly[35].CreatedAt.Truncate(7 * 24 * time.Hour)
	day := func(weeks int) string { return monday.AddDate(0, 0, 7*weeks).Format(time.DateOnly) }
	for _, test := range []struct{ model, brand, want string }{
		{"perplexity/sonar-pro", "Fernmark", "up"}, {"openai/gpt-5-search", "Fernmark", "down"}, {"", "Quillane", "up"},
		{"", "Alderway", "no_clear_change"},
	} {
		parameters := []string{"baseline_from", day(-11), "baseline_to", day(-5), "from", day(-5), "to", day(1), "brand_id", s.brands[test.brand]}
		if test.model != "" {
			parameters = append(parameters, "model_id", test.model)
		}
		var c struct {
			Data []struct {
				Mention struct {
					Verdict    string
					Difference *struct{ Value, Low, High float64 }
				} `json:"mention_rate"`
			}
		}
		s.get(&c, "/v1/metrics/compare", parameters...)
		if len(c.Data) != 1 || c.Data[0].Mention.Verdict != test.want {
			t.Errorf("%s on %q: %+v, want %s", test.brand, test.model, c.Data, test.want)
		} else {
			t.Logf("%s on %q: %+v", test.brand, test.model, *c.Data[0].Mention.Difference)
		}
	}
}

func (s *story) testNewCompetitor(t *testing.T) {
	for n := 1; n <= 12; n++ {
		from, to := s.between(n, n)
		m := s.metrics("from", from, "to", to, "brand_id", s.brands["Quillane"])
		switch rate := m.Data[0].Mention; {
		case n <= 5 && rate.Count != 0:
			t.Errorf("week %d: %d answers mention the new competitor", n, rate.Count)
		case n >= 10 && (rate.Value == nil || *rate.Value < 0.2):
			t.Errorf("week %d: %+v mention the new competitor, want at least 20 %%", n, rate)
		}
	}
}

func (s *story) testLowSample(t *testing.T) {
	var few []string
	for _, row := range s.metrics("group_by", "model", "brand_id", s.brands["Fernmark"]).Data {
		if row.Mention.Of > 2 && row.Mention.Of < 10 {
			few = append(few, row.Group.Model)
			if !row.Mention.LowSample {
				t.Errorf("%s is not a low sample: %+v", row.Group.Model, row.Mention)
			}
		}
	}
	if !slices.Contains(few, "mistral/le-chat") {
		t.Errorf("the models with 3 to 9 answers are %q", few)
	}
	for _, r := range s.weekly[:33] {
		if slices.Contains(r.ModelIDs, "mistral/le-chat") {
			t.Errorf("the run of %v has the model", r.CreatedAt)
		}
	}
}

func (s *story) testOutage(t *testing.T) {
	var without []string
	from, to := s.between(1, 12)
	for _, row := range s.metrics("from", from, "to", to, "group_by", "week", "brand_id", s.brands["Fernmark"]).Data {
		if row.Mention.Value == nil {
			without = append(without, row.Group.Week)
		}
	}
	want := []string{s.weekly[9].CreatedAt.Truncate(7 * 24 * time.Hour).Format(time.DateOnly)}
	if diff := cmp.Diff(want, without); diff != "" {
		t.Errorf("weeks without answers (-want +got):\n%s", diff)
	}
	for _, r := range s.weekly[9:12] {
		if r.Status != "failed" {
			t.Errorf("the run of %v is %s", r.CreatedAt, r.Status)
		}
	}
}

func (s *story) testSources(t *testing.T) {
	type sources struct {
		Data []struct {
			Host, Owner string
			Answers     int
		}
	}
	var all, gaps sources
	s.get(&all, "/v1/sources", "limit", "100")
	owners, shop := make(map[string]int), make(map[string]bool)
	for _, row := range all.Data {
		owners[row.Owner]++
		if row.Host == "shop.example.net" {
			shop[row.Owner] = true
		}
	}
	if len(owners) != 3 || !shop["own"] || !shop["other"] {
		t.Errorf("hosts by owner: %v; owners of the shop's pages: %v", owners, shop)
	}
	s.get(&gaps, "/v1/sources", "gap", "true", "owner", "other", "limit", "100")
	found := false
	for _, row := range gaps.Data {
		found = found || row.Host == "trailpost.example.net" && row.Answers >= 10
	}
	if !found {
		t.Errorf("no gap: %+v", gaps.Data)
	}
}

// testAlerts: the values of alerts are those of metrics for their run, and for the run of the series five weeks before.
func (s *story) testAlerts(t *testing.T) {
	var list struct {
		Data []struct {
			Type, Title, Status, Direction string
			Metric                         *string
			ModelID                        *string  `json:"model_id"`
			Current                        *float64 `json:"current_value"`
			Baseline                       *float64 `json:"baseline_value"`
			Brand                          *string  `json:"brand_id"`
			Schedule                       *string  `json:"schedule_id"`
			Run                            string   `json:"run_id"`
			Message                        string
		}
	}
	s.get(&list, "/v1/alerts", "limit", "100")
	imported, derived := make(map[string]int), make(map[string]bool)
	for _, a := range list.Data {
		if a.Schedule != nil {
			if a.Status == "open" && a.Brand != nil && *a.Brand == s.brands["Fernmark"] && a.ModelID != nil {
				derived[a.Type+" "+*a.ModelID] = true
			}
			continue
		}
		if !strings.Contains(a.Message, "Sample data") {
			t.Errorf("%s does not say that it is a sample", a.Title)
		}
		if a.Metric == nil || *a.Metric != "mention_rate" && *a.Metric != "citation_rate" {
			continue
		}
		imported[a.Type]++
		brand := "Fernmark"
		if a.Type == "competitor_gained" {
			brand = "Quillane"
		}
		if !strings.Contains(a.Title, brand) || a.Current == nil || a.Baseline == nil || (*a.Current > *a.Baseline) != (a.Direction == "up") {
			t.Errorf("the alert is %+v", a)
			continue
		}
		at := slices.IndexFunc(s.weekly, func(r storyRun) bool { return r.ID == a.Run })
		for i, want := range []float64{*a.Current, *a.Baseline} {
			if at < 15 {
				t.Fatalf("%s is of a run that is not weekly", a.Title)
			}
			parameters := []string{"run_id", s.weekly[at-15*i].ID, "brand_id", s.brands[brand]}
			if a.ModelID != nil {
				parameters = append(parameters, "model_id", *a.ModelID)
			}
			row := s.metrics(parameters...).Data[0]
			rate := row.Mention
			if *a.Metric == "citation_rate" {
				rate = row.Citation
			}
			if rate.Value == nil || *rate.Value != want || !strings.Contains(a.Message, fmt.Sprint(rate.Count, " of ", rate.Of)) {
				t.Errorf("%s: %v, want %+v", a.Title, want, rate)
			}
		}
	}
	for _, want := range []string{"visibility_drop", "visibility_gain", "citation_lost", "citation_gained", "competitor_gained"} {
		if imported[want] == 0 {
			t.Errorf("no imported alert is %s", want)
		}
	}
	for _, want := range []string{"visibility_drop openai/gpt-5-search", "visibility_gain perplexity/sonar-pro"} {
		if !derived[want] {
			t.Errorf("no schedule has the open alert %s; they have %v", want, derived)
		}
	}

	var recommendations struct {
		Data []struct{ Type, Title, Summary string }
	}
	s.get(&recommendations, "/v1/recommendations", "status", "suggested", "limit", "100")
	if !slices.ContainsFunc(recommendations.Data, func(r struct{ Type, Title, Summary string }) bool {
		return r.Type == "citation_gap" && strings.Contains(r.Title, "trailpost.example.net")
	}) {
		t.Errorf("no recommendation is about the gap: %+v", recommendations.Data)
	}
}
