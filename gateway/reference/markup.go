package reference

import (
	"encoding/json"
	"html/template"
	"regexp"
	"strings"
)

// prose is a description of openapi.json as HTML: its text, and its code blocks, which the page shows beside the text.
type prose struct {
	HTML   template.HTML
	Panels []panel
}

type panel struct {
	Caption string
	Code    template.HTML
}

// listItem matches the beginning of an item of a list. Its group is the number of an ordered one.
var listItem = regexp.MustCompile(`^(?:(\d+)\. |- )`)

// renderProse renders the subset of CommonMark that openapi.json uses: paragraphs, flat lists, links, emphasis, code,
// and fenced code blocks, whose info string is the caption.
func renderProse(text string) (p prose) {
	var html strings.Builder
	// Odd parts are code blocks: the info string, and the code.
	for i, part := range strings.Split(text, "```") {
		if i%2 == 1 {
			caption, code, _ := strings.Cut(part, "\n")
			p.Panels = append(p.Panels, panel{strings.TrimSpace(caption), renderPanel(strings.TrimSuffix(code, "\n"))})
			continue
		}
		// Blocks are separated by a blank line: a list, whose lines are its items, or a paragraph.
		for block := range strings.SplitSeq(part, "\n\n") {
			block = strings.TrimSpace(block)
			m := listItem.FindStringSubmatch(block)
			switch {
			case block == "":
			case m == nil:
				html.WriteString("<p>" + string(inline(block)) + "</p>\n")
			default:
				list := "ul"
				if m[1] != "" {
					list = "ol"
				}
				html.WriteString("<" + list + ">\n")
				for line := range strings.SplitSeq(block, "\n") {
					html.WriteString("<li>" + string(inline(listItem.ReplaceAllString(line, ""))) + "</li>\n")
				}
				html.WriteString("</" + list + ">\n")
			}
		}
	}
	p.HTML = template.HTML(html.String())
	return p
}

var (
	// The markup that inline renders, besides code.
	emphasis = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	link     = regexp.MustCompile(`\[([^\]]+)\]\(([^)\s]+)\)`)
)

// inline renders the text of a paragraph.
func inline(text string) template.HTML {
	var b strings.Builder
	// Odd parts are code, in which markup is not rendered.
	for i, part := range strings.Split(text, "`") {
		// The text is escaped first. This does not change markup, which has none of the escaped characters.
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			b.WriteString("<code>" + part + "</code>")
			continue
		}
		part = emphasis.ReplaceAllString(part, "<strong>$1</strong>")
		b.WriteString(link.ReplaceAllString(part, `<a href="$2">$1</a>`))
	}
	return template.HTML(b.String())
}

// renderPanel renders a code block. The page's script replaces {base_url} by the address of the server.
func renderPanel(code string) template.HTML {
	html := template.HTMLEscapeString(code)
	if strings.HasPrefix(code, "{\n") {
		html = string(color(code))
	}
	return template.HTML(strings.ReplaceAll(html, "{base_url}", "<span data-origin>{base_url}</span>"))
}

// token matches the parts of JSON that have a color. Its first group is a string, and the second the colon after it if
// that is a name.
var token = regexp.MustCompile(`("(?:[^"\\]|\\.)*")(:?)|\b(?:true|false|null)\b|-?\b\d+(?:\.\d+)?\b`)

// colorJSON renders JSON, indented, with the classes n (name), s (string) and v (other values).
func colorJSON(raw json.RawMessage) template.HTML {
	if len(raw) == 0 {
		return ""
	}
	return color(indented(string(raw), ""))
}

// color renders JSON text as colorJSON does, without indenting it.
func color(text string) template.HTML {
	var b strings.Builder
	end := 0
	for _, m := range token.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(template.HTMLEscapeString(text[end:m[0]]))
		class, until := "v", m[1]
		// m has the bounds of the match and of both groups. The colon itself has no color.
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
