package reference

import "maps"

// Words are the names that words.go says something of, by what they are of.
func Words() map[string][]string {
	words := make(map[string][]string)
	for name := range maps.Keys(routesWords) {
		words["routes"] = append(words["routes"], name)
	}
	for name := range maps.Keys(parameterWords) {
		words["parameters"] = append(words["parameters"], name)
	}
	for name := range maps.Keys(codeWords) {
		words["codes"] = append(words["codes"], name)
	}
	return words
}

// GoSamples are the requests written in Go, by route.
func GoSamples() map[string]string {
	samples := make(map[string]string)
	for name, e := range LoadExamples().Routes {
		for _, s := range samplesOf(&e.Success) {
			if s.ID == "go" {
				samples[name] = s.Text + "\n"
			}
		}
	}
	return samples
}
