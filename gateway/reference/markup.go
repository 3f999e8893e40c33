package reference

import (
	"bytes"
	"encoding/json"
	"html/template"
	"regexp"
	"strings"
)

// textWithCode writes plain text as HTML, what stands between backquotes as code.
func textWithCode(s string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(s, "`") {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		b.WriteString(part)
	}
	return template.HTML(b.String())
}

// token is a piece of indented JSON that has a color.
var token = regexp.MustCompile(`("(?:[^"\\]|\\.)*")(:?)|\b(?:true|false|null)\b|-?\b\d+(?:\.\d+)?\b`)

// colored writes JSON indented, its members' names, texts and other values told apart.
func colored(raw []byte) template.HTML {
	if len(raw) == 0 {
		return ""
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, raw, "", "  "); err != nil {
		panic(err)
	}
	text := indented.String()
	var b strings.Builder
	end := 0
	for _, m := range token.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(template.HTMLEscapeString(text[end:m[0]]))
		class, until := "v", m[1]
		if m[2] >= 0 {
			if class = "s"; m[5] > m[4] {
				class, until = "n", m[3]
			}
		}
		b.WriteString(`<span class="` + class + `">` + template.HTMLEscapeString(text[m[0]:until]) + `</span>` + text[until:m[1]])
		end = m[1]
	}
	b.WriteString(template.HTMLEscapeString(text[end:]))
	return template.HTML(b.String())
}
