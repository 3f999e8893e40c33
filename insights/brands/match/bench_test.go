package match

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// BenchmarkMatch finds 100 brands in Markdown lists of products like those that models write: a third of the
// products are brands.
func BenchmarkMatch(b *testing.B) {
	m := Compile(benchmarkBrands())
	q := m.Question("What are the best tools for small teams that need clear reports and a free plan?")
	for _, kib := range []int{1, 64} {
		b.Run(fmt.Sprintf("%dKiB", kib), func(b *testing.B) {
			answers := benchmarkAnswers(kib<<10, 50)
			b.SetBytes(int64(kib << 10))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				a := answers[i%len(answers)]
				a.Question = q
				m.Match(a)
			}
		})
	}
}

// benchmarkNames returns invented names; the first 100 are brands.
func benchmarkNames() (names []string) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		name := ""
		for range 2 + random.IntN(2) {
			name += pick(random, "ka", "bri", "tor", "quo", "vel", "zan", "mi", "lu", "fen", "dro", "sta", "pel")
		}
		name = strings.ToUpper(name[:1]) + name[1:] + pick(random, "x", "o", "a", "ly", "nt", "va", "r")
		if random.IntN(5) == 0 {
			name += pick(random, " Pay", " Desk", " & Sons", " Labs", " Inc.")
		}
		names = append(names, name)
	}
	return names
}

func pick(random *rand.Rand, list ...string) string { return list[random.IntN(len(list))] }

func benchmarkBrands() []Brand {
	var brands []Brand
	for i, name := range benchmarkNames()[:100] {
		domain := strings.ToLower(strings.Fields(name)[0]) + ".com"
		brands = append(brands, Brand{ID: fmt.Sprintf("brand_%03d", i), Own: i == 0, Name: name, Domains: []string{domain}})
	}
	return brands
}

// benchmarkAnswers returns n answers of size bytes, each with three citations.
func benchmarkAnswers(size, n int) []Answer {
	random := rand.New(rand.NewPCG(1, 2))
	names := benchmarkNames()
	answers := make([]Answer, n)
	for i := range answers {
		var text strings.Builder
		for text.Len() < size {
			text.WriteString(pick(random, "## The best tools for small teams\n\n", "**Recommended products**\n\n") +
				pick(random, "There is no single best choice: it depends on the budget, the size of the team and what you already use.\n\n",
					"For most companies — “small” ones too — a few products stand out:\n\n"))
			item := pick(random, "%d. **[%s](https://www.%s.com/)** – %s\n", "%d. **%s** ([website](https://www.%s.com/pricing)): %s\n",
				"- *No. %d:* %s, [see what it costs](https://www.%s.com/plans?ref=list); %s\n")
			name := ""
			for k := range 5 {
				name = names[random.IntN(len(names))]
				fmt.Fprintf(&text, item, k+1, name, strings.ToLower(name[:4]), pick(random, "easy to set up, with clear reports and a free plan.",
					"a solid choice for teams of 5–50 people.", "fast support and a fair price of about €20 a month.",
					"popular with agencies; the mobile app isn’t great.", "works offline & syncs later."))
			}
			fmt.Fprintf(&text, pick(random, "\nIf you want **one** safe choice, start with %s.\n\n", "\n> In short: %s is hard to beat for its price.\n\n",
				"\nMany users say that %s’s support is what made them stay.\n\n"), name)
		}
		answers[i].Text = strings.ToValidUTF8(text.String()[:size], ".")
		for range 3 {
			name := strings.ToLower(strings.Fields(names[random.IntN(len(names))])[0])
			answers[i].Citations = append(answers[i].Citations, Citation{fmt.Sprintf("https://www.%s.com/guides/%06d", name, random.IntN(1e6)), "A guide"})
		}
	}
	return answers
}
