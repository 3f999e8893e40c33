package engines

import (
	"fmt"
	"net/url"
	"strings"
)

// The Gemini API, generateContent of v1beta: https://ai.google.dev/api/generate-content. It takes no country, and a
// search cannot be required: both are said.

// geminiPath escapes the model, so that no name in the catalog can lead to another path.
func geminiPath(model string) string { return "/models/" + url.PathEscape(model) + ":generateContent" }

// geminiBody offers a search to a grounded job. readGemini finds out whether the model made one.
func geminiBody(p *prompt) object {
	parts := func(text string) []object { return []object{{{"text", text}}} }
	o := object{
		{"systemInstruction", object{{"parts", parts(p.system(p.grounded, false))}}},
		{"contents", []object{{{"role", "user"}, {"parts", parts(p.question)}}}},
		{"generationConfig", object{{"maxOutputTokens", p.limit}}},
	}
	if p.grounded {
		o = append(o, member{"tools", []object{{{"google_search", object{}}}}})
	}
	return o
}

// readGemini reads the first candidate. The API returns one unless a request asks for more.
func readGemini(_ *prompt, r response) (reading, error) {
	candidates := r.at("candidates").list()
	// The API rejects a prompt by leaving out the candidates.
	if len(candidates) == 0 {
		if reason := r.at("promptFeedback", "blockReason").text(); reason != "" {
			return refuse(contentRefused.because("blockReason " + reason)), nil
		}
		return refuse(emptyAnswer), nil
	}
	candidate := candidates[0]
	out := reading{version: r.at("modelVersion").text()}
	var text strings.Builder
	for i, part := range candidate.at("content", "parts").list() {
		if part.at("text").any == nil {
			continue
		}
		t, err := need[string](part, fmt.Sprintf("candidates[0].content.parts[%d]", i), "text")
		if err != nil {
			return out, err
		}
		// A thought is not part of the answer.
		if part.at("thought").any != true {
			text.WriteString(t)
		}
	}
	out.text = text.String()
	switch reason := candidate.at("finishReason").text(); reason {
	case "", "STOP":
	case "MAX_TOKENS":
		out.truncated = true
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII":
		return refuse(contentRefused.because("finishReason " + reason)), nil
	// Another reason, such as a malformed tool call, may not recur in the next attempt.
	default:
		return refuse(providerError.because("finishReason " + reason)), nil
	}
	grounding := candidate.at("groundingMetadata")
	searches := 0
	for _, q := range grounding.at("webSearchQueries").list() {
		if q.text() != "" {
			searches++
		}
		out.queries = append(out.queries, q.text())
	}
	out.citations = geminiCitations(grounding)
	out.searched = new(len(grounding.at("webSearchQueries").list()) > 0 || len(grounding.at("groundingChunks").list()) > 0)
	usage := r.at("usageMetadata")
	out.usage = usageOf(usage, sum(usage.at("promptTokenCount"), usage.at("toolUsePromptTokenCount")),
		sum(usage.at("candidatesTokenCount"), usage.at("thoughtsTokenCount")), new(int64(searches)))
	return out, nil
}

// geminiCitations returns the pages that support a part of the text, in the order in which the supports name them.
func geminiCitations(grounding value) (found []citation) {
	chunks := grounding.at("groundingChunks").list()
	supports := grounding.at("groundingSupports").list()
	add := func(n int64) {
		if n < int64(len(chunks)) {
			if web := chunks[n].at("web"); web.any != nil {
				found = append(found, citation{web.at("uri").text(), web.at("title").text()})
			}
		}
	}
	// Without supports it is not known which pages the text refers to, so all are cited.
	if len(supports) == 0 {
		for i := range chunks {
			add(int64(i))
		}
	}
	for _, s := range supports {
		for _, index := range s.at("groundingChunkIndices").list() {
			if n := index.count(); n != nil {
				add(*n)
			}
		}
	}
	return found
}
