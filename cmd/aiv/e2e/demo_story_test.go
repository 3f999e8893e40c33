package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A story reads the sample account of aiv demo by the API.
type story struct {
	api    *process
	key    string
	brands map[string]string // ids, by name
	weekly []storyRun        // the runs of three series, oldest first
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
	Data []struct {
		Group struct {
			Model string `json:"model_id"`
			Week  string
		}
		Mention  storyRate `json:"mention_rate"`
		Citation storyRate `json:"citation_rate"`
	}
}

type storyAlert struct {
	Type, Title, Status, Direction, Message string
	Metric                                  *string
	Model                                   string   `json:"model_id"`
	Current                                 *float64 `json:"current_value"`
	Baseline                                *float64 `json:"baseline_value"`
	Brand                                   string   `json:"brand_id"`
	Schedule                                *string  `json:"schedule_id"`
	Run                                     string   `json:"run_id"`
}

// get decodes the response of a route. parameters are names and values in turn; an empty value is left out.
func get[T any](t *testing.T, s *story, path string, parameters ...string) (v T) {
	t.Helper()
	values := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		if parameters[i+1] != "" {
			values.Set(parameters[i], parameters[i+1])
		}
	}
	a := s.api.get(t, path+"?"+values.Encode(), s.key)
	if a.status != 200 || json.Unmarshal([]byte(a.body), &v) != nil {
		t.Fatalf("%s %v: %d %s", path, parameters, a.status, a.body)
	}
	return v
}

// list is get for a route that lists.
func list[T any](t *testing.T, s *story, path string, parameters ...string) []T {
	t.Helper()
	return get[struct{ Data []T }](t, s, path, append(parameters, "limit", "100")...).Data
}

func (s *story) metrics(t *testing.T, parameters ...string) storyMetrics {
	t.Helper()
	return get[storyMetrics](t, s, "/v1/metrics", parameters...)
}

// weeks returns the parameters of the window from the runs of a week to those of another week, both included, and of a
// brand.
func (s *story) weeks(first, last int, brand string) []string {
	from, to := s.weekly[3*first-3].CreatedAt.Add(-time.Minute), s.weekly[3*last-1].CreatedAt.Add(time.Minute)
	return []string{"from", from.Format(time.RFC3339), "to", to.Format(time.RFC3339), "brand_id", s.brands[brand]}
}

// testStory: the routes of the API tell what happened to the sample account in twelve weeks. text is what aiv demo has
// printed. The printed commands add runs and brands to the account, so the test precedes them.
func testStory(t *testing.T, text string) {
	base := exported(text, "BASE")
	s := &story{api: &process{base: base}, key: exported(text, "KEY"), brands: make(map[string]string)}
	if want := "\n  report     " + base + "/report "; !strings.Contains(text, want) {
		t.Errorf("the instructions lack %q", want)
	}
	s.testBrands(t)
	s.testHistory(t)
	for name, test := range map[string]func(*testing.T){
		"gain and drop": s.testGainAndDrop, "new competitor": s.testNewCompetitor, "low sample": s.testLowSample, "outage": s.testOutage,
		"sources": s.testSources, "alerts": s.testAlerts,
	} {
		t.Run(name, test)
	}
}

// reserved matches the domains that nobody can register.
var reserved = regexp.MustCompile(`\.example\.(com|net|org)(/|$)`)

func (s *story) testBrands(t *testing.T) {
	type brand struct {
		ID, Kind, Name string
		Domains        []string
	}
	own := ""
	for _, b := range list[brand](t, s, "/v1/brands") {
		s.brands[b.Name] = b.ID
		if b.Kind == "own" {
			own += b.Name
		}
		for _, d := range b.Domains {
			if !reserved.MatchString(d) {
				t.Errorf("%s has the domain %s", b.Name, d)
			}
		}
	}
	if len(s.brands) != 5 || own != "Fernmark" {
		t.Errorf("%d brands, own: %s; want 5, Fernmark", len(s.brands), own)
	}
}

func (s *story) testHistory(t *testing.T) {
	all := list[storyRun](t, s, "/v1/runs")
	slices.SortFunc(all, func(a, b storyRun) int { return a.CreatedAt.Compare(b.CreatedAt) })
	series := make(map[string]int)
	for _, r := range all {
		if slices.Contains([]string{"completed", "partial", "failed"}, r.Status) && len(s.weekly) < 36 {
			s.weekly = append(s.weekly, r)
			series[r.Country+" "+strings.Join(r.Questions, " ")]++
		}
	}
	if diff := cmp.Diff(map[string]int{
		"US en-running-shoes en-trail-shoes en-marathon-shoes en-wide-shoes en-fernmark-shoes": 12,
		"IT it-running-shoes it-hiking-boots":                                                  12,
		"US en-hiking-boots en-winter-boots":                                                   12,
	}, series); diff != "" {
		t.Fatalf("weekly runs by series (-want +got):\n%s", diff)
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
		type change struct {
			Mention struct{ Verdict string } `json:"mention_rate"`
		}
		got := get[struct{ Data []change }](t, s, "/v1/metrics/compare",
			"baseline_from", day(-11), "baseline_to", day(-5), "from", day(-5), "to", day(1),
			"brand_id", s.brands[test.brand], "model_id", test.model).Data
		if len(got) != 1 || got[0].Mention.Verdict != test.want {
			t.Errorf("%s on %q: %+v, want %s", test.brand, test.model, got, test.want)
		}
	}
}

func (s *story) testNewCompetitor(t *testing.T) {
	for n := 1; n <= 12; n++ {
		rate := s.metrics(t, s.weeks(n, n, "Quillane")...).Data[0].Mention
		if n <= 5 && rate.Count != 0 || n >= 10 && (rate.Value == nil || *rate.Value < 0.2) {
			t.Errorf("week %d: %+v mention the new competitor, want none up to week 5, and at least 20 %% from week 10 on", n, rate)
		}
	}
}

func (s *story) testLowSample(t *testing.T) {
	var few []string
	for _, row := range s.metrics(t, "group_by", "model", "brand_id", s.brands["Fernmark"]).Data {
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
	for _, row := range s.metrics(t, append(s.weeks(1, 12, "Fernmark"), "group_by", "week")...).Data {
		if row.Mention.Value == nil {
			without = append(without, row.Group.Week)
		}
	}
	if want := []string{s.weekly[9].CreatedAt.Truncate(7 * 24 * time.Hour).Format(time.DateOnly)}; !slices.Equal(without, want) {
		t.Errorf("the weeks without answers are %q, want %q", without, want)
	}
	for _, r := range s.weekly[9:12] {
		if r.Status != "failed" {
			t.Errorf("the run of %v is %s", r.CreatedAt, r.Status)
		}
	}
}

func (s *story) testSources(t *testing.T) {
	type source struct {
		Host, Owner string
		Answers     int
	}
	owners, shop := make(map[string]int), make(map[string]bool)
	for _, row := range list[source](t, s, "/v1/sources") {
		owners[row.Owner]++
		if row.Host == "shop.example.net" {
			shop[row.Owner] = true
		}
	}
	if len(owners) != 3 || !shop["own"] || !shop["other"] {
		t.Errorf("hosts by owner: %v; owners of the shop's pages: %v", owners, shop)
	}
	gaps := list[source](t, s, "/v1/sources", "gap", "true", "owner", "other")
	if !slices.ContainsFunc(gaps, func(gap source) bool { return gap.Host == "trailpost.example.net" && gap.Answers >= 10 }) {
		t.Errorf("no gap: %+v", gaps)
	}
	type recommendation struct{ Type, Title string }
	suggested := list[recommendation](t, s, "/v1/recommendations", "status", "suggested")
	if !slices.ContainsFunc(suggested, func(r recommendation) bool {
		return r.Type == "citation_gap" && strings.Contains(r.Title, "trailpost.example.net")
	}) {
		t.Errorf("no recommendation is about the gap: %+v", suggested)
	}
}

func (s *story) testAlerts(t *testing.T) {
	missing := map[string]bool{
		"visibility_drop": true, "visibility_gain": true, "citation_lost": true, "citation_gained": true, "competitor_gained": true,
		"derived visibility_drop openai/gpt-5-search": true, "derived visibility_gain perplexity/sonar-pro": true,
	}
	for _, a := range list[storyAlert](t, s, "/v1/alerts") {
		if a.Schedule != nil {
			if a.Status == "open" && a.Brand == s.brands["Fernmark"] {
				delete(missing, "derived "+a.Type+" "+a.Model)
			}
			continue
		}
		if !strings.Contains(a.Message, "Sample data") {
			t.Errorf("%s does not say that it is a sample", a.Title)
		}
		if a.Metric != nil && (*a.Metric == "mention_rate" || *a.Metric == "citation_rate") {
			delete(missing, a.Type)
			s.testImported(t, a)
		}
	}
	if len(missing) > 0 {
		t.Errorf("there is no alert of %v", missing)
	}
}

// testImported: the values of an alert are those of metrics for its run, and for the run of the series five weeks
// before.
func (s *story) testImported(t *testing.T, a storyAlert) {
	t.Helper()
	brand := "Fernmark"
	if a.Type == "competitor_gained" {
		brand = "Quillane"
	}
	at := slices.IndexFunc(s.weekly, func(r storyRun) bool { return r.ID == a.Run })
	if !strings.Contains(a.Title, brand) || at < 15 || a.Current == nil || a.Baseline == nil ||
		(*a.Current > *a.Baseline) != (a.Direction == "up") {
		t.Errorf("the alert is %+v", a)
		return
	}
	for i, want := range []float64{*a.Current, *a.Baseline} {
		row := s.metrics(t, "run_id", s.weekly[at-15*i].ID, "brand_id", s.brands[brand], "model_id", a.Model).Data[0]
		rate := row.Mention
		if *a.Metric == "citation_rate" {
			rate = row.Citation
		}
		if rate.Value == nil || *rate.Value != want || !strings.Contains(a.Message, fmt.Sprint(rate.Count, " of ", rate.Of)) {
			t.Errorf("%s: %v, want %+v", a.Title, want, rate)
		}
	}
}
