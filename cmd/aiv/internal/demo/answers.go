package demo

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"aiv/runs/answers"
	"aiv/runs/jobs"
)

const note = "This is a sample answer of aiv demo; no model was asked."

// sampleAnswer returns the answer of a job. Its text says that it is a sample. It depends only on the model, the
// question, the repetition and progress, which is 0 twelve weeks ago and 1 now.
func sampleAnswer(j *jobs.Job, at time.Time, progress float64) *answers.Answer {
	a := &answers.Answer{
		ModelVersion: new(j.Parameters.ProviderModel), AnsweredAt: at, Searched: new(true),
		SearchQueries: []string{"sample query about " + j.Question.ID},
	}
	seed := fnv.New64a()
	fmt.Fprint(seed, j.Parameters.ModelID, " ", j.Question.ID, " ", j.Repetition, " ", progress)
	random := rand.New(rand.NewPCG(seed.Sum64(), 0))
	if strings.HasSuffix(j.Question.ID, "-shoes") {
		adviseOnShoes(a, j, random, progress)
	} else {
		a.Text = note + " " + j.Parameters.ModelID + " would answer here: " + j.Question.Text
		cite(a, "example.org", "/sample/"+j.Question.ID, "Sample page about "+j.Question.ID)
		cite(a, "example.org", fmt.Sprint("/sample/", j.Repetition), "")
	}
	return a
}

// Words are those of answers about running shoes in a language.
type words struct {
	intro, none, end string
	remarks          []string // by brand
}

var wordsOf = map[string]words{
	"en": {
		intro: "Runners and reviewers name these shoes most often:",
		none:  "That depends on your feet: a shop with a treadmill can advise you.",
		end:   "Try them on in the afternoon, when feet are a little larger.",
		remarks: []string{
			"light, and soft at the heel", "forgiving, and easy to find", "stable on wet ground",
			"a firm sole for long distances", "a wide toe box",
		},
	},
	"it": {
		intro: "Chi corre e chi prova le scarpe nomina soprattutto queste:",
		none:  "Dipende dai tuoi piedi: un negozio con il tapis roulant ti sa consigliare.",
		end:   "Provale di pomeriggio, quando i piedi sono un po' più grandi.",
		remarks: []string{
			"leggera e morbida sul tallone", "facile da portare e da trovare", "stabile sul bagnato",
			"suola rigida per le lunghe distanze", "punta larga",
		},
	},
	"de": {
		intro: "Läufer und Tester nennen diese Schuhe am häufigsten:",
		none:  "Das hängt von deinen Füßen ab: Ein Geschäft mit Laufband kann dich beraten.",
		end:   "Probiere sie nachmittags an, wenn die Füße etwas größer sind.",
		remarks: []string{
			"leicht und weich an der Ferse", "gutmütig und leicht zu finden", "stabil auf nassem Boden",
			"feste Sohle für lange Strecken", "vorn breit",
		},
	},
}

// adviseOnShoes writes an answer that lists brands, the ones that the model favors first.
func adviseOnShoes(a *answers.Answer, j *jobs.Job, random *rand.Rand, progress float64) {
	type named struct {
		brand int
		order float64
	}
	var list []named
	for i := range sampleBrands {
		if p, rate := random.Float64(), sampleBrands[i].rate(j.Provider, progress); p < rate {
			list = append(list, named{i, p / rate / rate})
		}
	}
	slices.SortFunc(list, func(a, b named) int { return cmp.Compare(a.order, b.order) })
	in := wordsOf[j.Question.Language]
	var text strings.Builder
	text.WriteString(note + "\n\n")
	if len(list) == 0 {
		text.WriteString(in.none)
	} else {
		text.WriteString(in.intro + "\n\n")
	}
	for n, of := range list {
		b := &sampleBrands[of.brand]
		shoe := b.name + " " + b.product
		if of.brand == 0 && random.IntN(4) == 0 {
			shoe = b.product // only an alias finds it
		}
		path := "/" + strings.ReplaceAll(strings.ToLower(b.product), " ", "-")
		fmt.Fprintf(&text, "%d. **[%s](https://%s%s)**: %s\n", n+1, shoe, b.host, path, in.remarks[of.brand])
		if random.IntN(2) == 0 {
			cite(a, "www."+b.host, path, shoe)
		}
	}
	text.WriteString("\n" + in.end)
	a.Text = text.String()
	for _, site := range sampleSites {
		if random.IntN(10) < site.often {
			cite(a, site.host, site.path+j.Question.ID, "")
		}
	}
	if random.IntN(12) == 0 {
		a.Searched, a.Citations, a.SearchQueries = new(false), nil, nil
	}
	a.Truncated = random.IntN(50) == 0
}

// sampleSites are cited beside pages of brands, by often of ten answers. They do not exist either.
var sampleSites = []struct {
	host, path string
	often      int
}{
	{"www.runlab.example", "/best/", 7},
	{"forum.runlab.example", "/t/", 4},
	{"magazine.example", "/running/", 3},
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
