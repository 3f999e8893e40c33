package reference

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"text/template"
)

// renderMarkdown returns the reference as Markdown, from the same view as the page.
func renderMarkdown(d *description, examples ordered[Example]) []byte {
	t := template.Must(template.New("reference.md").Funcs(template.FuncMap{
		"prose": markdownProse, "text": markdownText, "value": d.value, "json": indentJSON, "curl": curlOf,
		"statusText": http.StatusText,
	}).Parse(markdownTemplate))
	var b bytes.Buffer
	if err := t.Execute(&b, newPage(d, examples)); err != nil {
		panic(err) // the template and the document are embedded, and a test renders them
	}
	return blankLines.ReplaceAll(b.Bytes(), []byte("\n\n"))
}

// blankLines matches two or more blank lines.
var blankLines = regexp.MustCompile(`\n{3,}`)

//go:embed markdown.tmpl
var markdownTemplate string

// markdownText returns a paragraph of openapi.json, which is Markdown. Links to sections of the page become links to
// the page.
func markdownText(text string) string {
	return strings.ReplaceAll(text, "](#", "](/external-api-v1/docs#")
}

// markdownProse returns a description of openapi.json. The captions of code blocks become paragraphs.
func markdownProse(text string) string {
	parts := strings.Split(text, "```")
	for i := range parts {
		// Text and code blocks alternate.
		if i%2 == 0 {
			parts[i] = markdownText(parts[i])
			continue
		}
		caption, code, _ := strings.Cut(parts[i], "\n")
		parts[i] = strings.TrimSpace(caption) + ":\n\n```\n" + strings.TrimSuffix(code, "\n") + "\n```"
	}
	return strings.Join(parts, "")
}

// indentJSON returns JSON with indentation.
func indentJSON(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	return indented(string(raw), "")
}

// curlOf returns the request of a route as a curl command.
func curlOf(r route) string {
	for _, s := range r.Samples {
		if s.ID == "curl" {
			return s.Text
		}
	}
	return ""
}
