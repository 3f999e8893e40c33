package reference

import "encoding/json"

// GoSamples returns the samples in Go, by operation.
func GoSamples() map[string]string {
	d, examples := sources()
	samples := make(map[string]string)
	for _, g := range newPage(d, examples).Groups {
		for _, r := range g.Routes {
			for _, s := range r.Samples {
				if s.ID == "go" {
					samples[r.ID] = s.Text + "\n"
				}
			}
		}
	}
	return samples
}

// RenderPage returns the page of an OpenAPI document.
func RenderPage(openAPI []byte) (string, error) {
	var d description
	if err := json.Unmarshal(openAPI, &d); err != nil {
		return "", err
	}
	_, examples := sources()
	return string(renderPage(&d, examples)), nil
}
