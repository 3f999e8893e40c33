package demo

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"aiv/runs/answers"
	"aiv/runs/jobs"
)

// sampleAnswer returns the answer of a job. Its text says that it is a sample. It depends only on the job's model,
// question and repetition, and on the name and the week of its run.
func sampleAnswer(j *jobs.Job, at time.Time, run string, week int) *answers.Answer {
	a := &answers.Answer{
		ModelVersion: new(served(j.Parameters.ProviderModel, week)), AnsweredAt: at, Searched: new(true),
		SearchQueries: []string{"sample query about " + j.Question.ID},
	}
	in, ok := wordsOf[j.Question.Language]
	if !ok {
		in = wordsOf["en"]
	}
	if strings.HasSuffix(j.Question.ID, "-shoes") || strings.HasSuffix(j.Question.ID, "-boots") {
		advise(a, j, &in, run, week)
	} else {
		a.Text = in.note + " " + j.Parameters.ModelID + " " + in.would + ": " + j.Question.Text
		cite(a, "example.org", "/sample/"+j.Question.ID, "Sample page about "+j.Question.ID)
		cite(a, "example.org", fmt.Sprint("/sample/", j.Repetition), "")
	}
	return a
}

// served returns the version of a model that gave the answers of a week. One model was replaced two weeks ago.
func served(model string, week int) string {
	switch {
	case model != "gemini-2.5-pro":
		return model
	case week < weeks-1:
		return model + "-001"
	}
	return model + "-002"
}

// advise writes an answer that lists brands, the ones that the model favors first.
func advise(a *answers.Answer, j *jobs.Job, in *words, run string, week int) {
	seed := fnv.New64a()
	fmt.Fprint(seed, run, " ", j.Parameters.ModelID, " ", j.Question.ID)
	// even is the same for all repetitions of a question on a model; random differs in each.
	even := rand.New(rand.NewPCG(seed.Sum64(), 0))
	random := rand.New(rand.NewPCG(seed.Sum64(), uint64(j.Repetition)))
	type named struct {
		brand int
		order float64
	}
	var list []named
	for i := range sampleBrands {
		// The multiples of the golden ratio spread the repetitions evenly, so that few answers show the rate.
		_, p := math.Modf(even.Float64() + float64(j.Repetition)*math.Phi)
		if rate := sampleBrands[i].rate(j.Provider, week); p < rate {
			// p / rate is evenly distributed below 1. Dividing by rate again puts frequent brands first more often.
			list = append(list, named{i, p / rate / rate})
		}
	}
	slices.SortFunc(list, func(a, b named) int { return cmp.Compare(a.order, b.order) })
	var text strings.Builder
	text.WriteString(in.note + "\n\n")
	if len(list) == 0 {
		text.WriteString(in.none + "\n")
	} else {
		text.WriteString(in.intro + "\n\n")
	}
	// hasOwn reports whether the list has the account's own brand, the first of sampleBrands.
	hasOwn := false
	for n, of := range list {
		b, isOwn := &sampleBrands[of.brand], of.brand == 0
		hasOwn = hasOwn || isOwn
		product := b.boot
		if strings.HasSuffix(j.Question.ID, "-shoes") {
			product = b.shoe
		}
		label := b.name + " " + product
		switch chance := random.IntN(10); {
		case isOwn && product == b.shoe && chance < 2:
			label = product // only the alias of the printed commands finds it
		case isOwn && chance < 4:
			label = b.aliases[0] + " " + product
		}
		path := "/" + strings.ReplaceAll(strings.ToLower(product), " ", "-")
		fmt.Fprintf(&text, "%d. **[%s](https://%s%s)**: %s\n", n+1, label, b.host, path, in.remarks[of.brand])
		if random.IntN(2) == 0 {
			cite(a, "www."+b.host, path, label)
		}
		if random.IntN(4) == 0 {
			cite(a, shop, "/"+strings.ToLower(b.name)+path, "")
		}
	}
	text.WriteString("\n" + in.ends[random.IntN(len(in.ends))])
	a.Text = text.String()
	for _, site := range sampleSites {
		if random.IntN(10) < site.often && (!site.gap || !hasOwn && len(list) > 0) {
			cite(a, site.host, site.path+j.Question.ID, "")
		}
	}
	// One answer of twelve was made without a search, and so without citations.
	if random.IntN(12) == 0 {
		a.Searched, a.Citations, a.SearchQueries = new(false), nil, nil
	}
	// One answer of fifty was cut at the output limit.
	a.Truncated = random.IntN(50) == 0
}

// sampleSites are cited beside pages of brands, by often of ten answers, or of those with a gap: that name a competitor
// and not the own brand. They do not exist either.
var sampleSites = []struct {
	host, path string
	often      int
	gap        bool
}{
	{"www.runlab.example.org", "/best/", 7, false},
	{"forum.runlab.example.org", "/t/", 4, false},
	{"magazine.example.com", "/outdoor/", 3, false},
	{"trailpost.example.net", "/tests/", 5, true},
}

// cite adds a citation. An empty title is not known.
func cite(a *answers.Answer, host, path, title string) {
	domain := strings.TrimPrefix(host, "www.")
	c := answers.Citation{Position: len(a.Citations) + 1, URL: "https://" + host + path, Domain: domain}
	if title != "" {
		c.Title = &title
	}
	a.Citations = append(a.Citations, c)
}
