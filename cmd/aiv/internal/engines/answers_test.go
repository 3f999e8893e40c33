package engines

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"aiv/cmd/aiv/internal/work"
)

// A canned transport gives the same response to every request.
type canned struct {
	status int
	header map[string]string
	body   string
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body.Close()
	}
	h := http.Header{}
	for k, v := range c.header {
		h.Set(k, v)
	}
	return &http.Response{StatusCode: c.status, Header: h, Body: io.NopCloser(strings.NewReader(c.body)), Request: r}, nil
}

// settled returns the outcome of a job whose requests all get one response.
func settled(t testing.TB, engine string, grounded bool, c canned) (string, map[string]any) {
	t.Helper()
	x := newTest(t, engine, "http://127.0.0.1:1")
	x.transport = c
	return outcome(t, x, testJob("m", grounded))
}

// response forms of the engines, with what a case is about.
func ofOpenAI(status, output string) string {
	return fmt.Sprintf(`{"status":%q,"model":"m-1","output":[%s],"usage":{"input_tokens":1,"output_tokens":2}}`, status, output)
}

func message(parts string) string { return `{"type":"message","content":[` + parts + `]}` }

func said(text string) string { return cited(text, "") }

func cited(text, annotations string) string {
	return `{"type":"output_text","text":"` + text + `","annotations":[` + annotations + `]}`
}

func ofAnthropic(stop, content string) string {
	return fmt.Sprintf(`{"model":"m-1","stop_reason":%q,"content":[%s],"usage":{"input_tokens":1,"output_tokens":2}}`, stop, content)
}

func ofGemini(candidate string) string {
	return `{"candidates":[` + candidate + `],"modelVersion":"m-1","usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}}`
}

func ofChat(choice string) string {
	return `{"model":"m-1","choices":[` + choice + `],"usage":{"prompt_tokens":1,"completion_tokens":2}}`
}

const (
	refused     = `{"outcome":"failed","error":{"code":"content_refused","message":"The model or the API refused to answer."}}`
	limited     = `{"outcome":"failed","error":{"code":"output_limit","message":"The model reached its output limit before it answered."}}`
	empty       = `{"outcome":"retry","error":{"code":"empty_answer","message":"The model answered without text."},"after_seconds":null}`
	invalidBody = `{"outcome":"retry","error":{"code":"invalid_response","message":"The response of the API is not valid."},"after_seconds":null}`
	apiFailed   = `{"outcome":"retry","error":{"code":"provider_error","message":"The API failed."},"after_seconds":null}`
	slowDown    = `{"outcome":"throttled","after_seconds":null}`
)

// answered returns a completed answer. rest has the members after the text.
func answered(text, citations, queries, searched, truncated, usage string) string {
	quoted, _ := encode(text)
	return fmt.Sprintf(`{"outcome":"completed","answer":{"text":%s,"citations":[%s],"search_queries":[%s],"model_version":"m-1","searched":%s,"truncated":%s,"usage":%s}}`,
		quoted, citations, queries, searched, truncated, usage)
}

func plain(text, searches string) string {
	return answered(text, "", "", "false", "false", `{"input_tokens":1,"output_tokens":2,"searches":`+searches+`}`)
}

func truncated(text, searches string) string {
	return answered(text, "", "", "false", "true", `{"input_tokens":1,"output_tokens":2,"searches":`+searches+`}`)
}

// TestEachEndOfAnAnswer: how a response with the status 200 ends, for each engine and each sign.
func TestEachEndOfAnAnswer(t *testing.T) {
	t.Parallel()
	said, blank := message(said("A")), message(said(` \n\u00a0`))
	refusal := message(`{"type":"refusal","refusal":"no"}`)
	failed := func(code string) string { return `{"status":"failed","output":[],"error":` + code + `}` }
	const block = `{"type":"text","text":"A"}`
	toolError := func(code string) string {
		return `{"type":"server_tool_use","name":"web_search","input":{}},{"type":"web_search_tool_result",` +
			`"content":{"type":"web_search_tool_result_error","error_code":"` + code + `"}}`
	}
	part := func(reason string) string {
		return ofGemini(`{"content":{"parts":[{"text":"A"}]},"finishReason":"` + reason + `"}`)
	}
	choice := func(message, reason string) string {
		return ofChat(`{"message":` + message + `,"finish_reason":` + reason + `}`)
	}
	const unsearched = `{"input_tokens":1,"output_tokens":2,"searches":null}`
	for _, test := range []struct {
		engine, want string
		bodies       []string
	}{
		{"openai", plain("A", "0"), []string{ofOpenAI("completed", said)}},
		{"openai", empty, []string{ofOpenAI("completed", ""), ofOpenAI("completed", blank)}},
		{"openai", truncated("A", "0"), []string{ofOpenAI("incomplete", said)}},
		{"openai", limited, []string{ofOpenAI("incomplete", "")}},
		{"openai", refused, []string{ofOpenAI("completed", said+","+refusal), ofOpenAI("incomplete", refusal),
			`{"status":"incomplete","output":[` + said + `],"incomplete_details":{"reason":"content_filter"}}`,
			failed(`{"code":"invalid_prompt"}`), failed(`{"code":"image_policy_violation"}`)}},
		{"openai", slowDown, []string{failed(`{"code":"rate_limit_exceeded"}`)}},
		{"perplexity", slowDown, []string{failed(`{"type":"request_rate_limit_exceeded"}`)}},
		{"openai", apiFailed, []string{failed(`{"code":"server_error"}`), ofOpenAI("cancelled", "")}},
		{"xai", apiFailed, []string{failed(`null`)}},
		{"openai", invalidBody, []string{ofOpenAI("queued", ""), ofOpenAI("in_progress", said), `{"output":[]}`,
			ofOpenAI("completed", message(`{"type":"output_text","text":7}`))}},
		{"xai", invalidBody, []string{`{"status":"completed"}`, ofOpenAI("completed", `{"type":"message"}`)}},

		{"anthropic", plain("A", "0"), []string{ofAnthropic("end_turn", block), ofAnthropic("stop_sequence", block),
			ofAnthropic("end_turn", toolError("max_uses_exceeded")+","+block)}},
		{"anthropic", empty, []string{ofAnthropic("end_turn", "")}},
		{"anthropic", truncated("A", "0"), []string{ofAnthropic("max_tokens", block),
			ofAnthropic("model_context_window_exceeded", block)}},
		{"anthropic", limited, []string{ofAnthropic("max_tokens", "")}},
		{"anthropic", refused, []string{ofAnthropic("refusal", ""), ofAnthropic("refusal", block)}},
		{"anthropic", invalidBody, []string{ofAnthropic("tool_use", block), `{"stop_reason":"end_turn","content":"A"}`,
			`{"stop_reason":null,"content":[]}`, ofAnthropic("end_turn", `{"type":"text"}`)}},
		{"anthropic", slowDown, []string{ofAnthropic("end_turn", toolError("too_many_requests")+","+block)}},
		{"anthropic", apiFailed, []string{ofAnthropic("end_turn", toolError("unavailable")+","+block),
			ofAnthropic("max_tokens", toolError("unavailable"))}},

		{"gemini", plain("A", "0"), []string{part("STOP"), ofGemini(`{"content":{"parts":[{"text":"A"}]}}`)}},
		{"gemini", empty, []string{`{"candidates":[]}`, `{}`, ofGemini(`{"finishReason":"STOP"}`)}},
		{"gemini", truncated("A", "0"), []string{part("MAX_TOKENS")}},
		{"gemini", limited, []string{ofGemini(`{"finishReason":"MAX_TOKENS"}`)}},
		{"gemini", refused, []string{`{"promptFeedback":{"blockReason":"SAFETY"}}`, part("SAFETY"), part("RECITATION"),
			part("LANGUAGE"), part("BLOCKLIST"), part("PROHIBITED_CONTENT"), part("SPII")}},
		{"gemini", invalidBody, []string{ofGemini(`{"content":{"parts":[{},{"text":1}]}}`)}},
		{"gemini", apiFailed, []string{part("MALFORMED_FUNCTION_CALL")}},

		{"chat", answered("A", "", "", "null", "false", unsearched), []string{
			choice(`{"content":"A","refusal":""}`, `null`)}},
		{"chat", answered("A", "", "", "null", "true", unsearched), []string{choice(`{"content":"A"}`, `"length"`)}},
		{"chat", empty, []string{choice(`{"content":""}`, `"eos"`)}},
		{"chat", limited, []string{choice(`{"content":null}`, `"length"`)}},
		{"chat", refused, []string{choice(`{"content":"A"}`, `"content_filter"`),
			choice(`{"content":null,"refusal":"no"}`, `"stop"`)}},
		{"chat", invalidBody, []string{choice(`{"content":null}`, `"tool_calls"`),
			choice(`{"content":null}`, `"function_call"`), `{}`, ofChat(`{"text":"A"}`),
			ofChat(`{"message":{"content":"A"}},{"message":{"content":"B"}}`)}},
		{"chat", slowDown, []string{`{"error":{"message":"slow down","code":429}}`}},
		{"chat", apiFailed, []string{`{"error":{"message":"bad","code":"oops"}}`, `{"error":"bad"}`,
			`{"error":{"message":"bad","code":200}}`}},
		{"chat", `{"outcome":"failed","error":{"code":"invalid_request","message":"The API rejected the request. (400 400)"}}`,
			[]string{`{"error":{"message":"bad","code":"400"}}`}},
		{"chat", `{"outcome":"unavailable","reason":"configuration","message":"The address redirects, which is not followed (302 302)."}`,
			[]string{`{"error":{"message":"moved","code":302}}`}},
	} {
		for _, body := range test.bodies {
			if got, attrs := settled(t, test.engine, true, canned{200, nil, body}); got != test.want {
				t.Errorf("%s %s:\n got %s\nwant %s\n%v", test.engine, body, got, test.want, attrs)
			}
		}
	}
}

// TestOddMembers: what an answer can do without may be missing, null or of another type.
func TestOddMembers(t *testing.T) {
	t.Parallel()
	const odd = `,"usage":[],"tool_usage":7,"model":null,"error":{},"incomplete_details":"x","new":{"a":[1]}}`
	want := `{"outcome":"completed","answer":{"text":"A","citations":[],"search_queries":[],"model_version":null,"searched":false,"truncated":false,"usage":null}}`
	for _, test := range []struct{ engine, body string }{
		{"openai", `{"status":"completed","output":[7,null,{"type":7},{"type":"web_search_call","status":"failed","action":[]},{"type":"message","phase":{},"content":["x",{"type":"output_text","text":"A","annotations":{}},{"type":"new"}]}]` + odd},
		{"perplexity", `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"A"}]}]` + odd},
		{"xai", `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"A","annotations":[null,7,{"type":"url_citation","start_index":"0","end_index":null}]}]}]` + odd},
		{"anthropic", `{"stop_reason":"end_turn","content":[null,{"type":"text","text":"A","citations":[7,{"type":"char_location"}]},{"type":"new","text":7}]` + odd},
		{"gemini", `{"candidates":[{"content":{"parts":[null,{"functionCall":{}},{"text":"A","thought":false},{"text":"B","thought":true},{"text":null}]},"groundingMetadata":{"webSearchQueries":null,"groundingChunks":{},"groundingSupports":7}}],"usageMetadata":null,"modelVersion":7` + odd},
	} {
		if got, _ := settled(t, test.engine, true, canned{200, nil, test.body}); got != want {
			t.Errorf("%s %s:\n got %s\nwant %s", test.engine, test.body, got, want)
		}
	}
}

// TestTextCitationsAndCost: what is an answer's text, what it cites, what was searched, and what it cost.
func TestTextCitationsAndCost(t *testing.T) {
	t.Parallel()
	usage := `{"input_tokens":1,"output_tokens":2,"searches":`
	search := `{"type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}`
	annotation := func(url, title string) string {
		return `{"type":"url_citation","url":"` + url + `","title":` + title + `}`
	}
	for _, test := range []struct{ name, engine, body, want string }{
		{"marks are removed, also in the middle", "openai", ofOpenAI("completed", message(said(`A \uE200cite\uE202turn0\uE201B【3†source】【C】\uE200`))),
			plain("A B【C】\ue200", "0")},
		{"the source is taken out of links only", "openai", ofOpenAI("completed", search+","+message(cited("https://a.example/?utm_source=openai",
			annotation("https://a.example/?utm_source=openai&a=1#f", `"T"`)+","+annotation("https://a.example/?a=1&utm_source=chatgpt.com#f", `"U"`)+","+
				annotation("https://b.example/?utm_source=openai", `""`)+","+annotation("https://b.example/?utm_source=other", `null`)+","+annotation("https://b.example/#?utm_source=openai", `7`)))),
			answered("https://a.example/?utm_source=openai", `{"url":"https://a.example/?a=1#f","title":"T"},{"url":"https://b.example/","title":null},`+
				`{"url":"https://b.example/?utm_source=other","title":null},{"url":"https://b.example/#?utm_source=openai","title":null}`, `"q"`, "true", "false", usage+"1}")},
		{"bad citations are dropped, the first title stays", "openai", ofOpenAI("completed", message(cited("A",
			annotation("ftp://a.example/", `"T"`)+","+annotation("https:///x", `"T"`)+","+annotation("https://a.example/", "null")+","+annotation("https://a.example/", `"T"`)+","+
				annotation("https://"+strings.Repeat("a", 2048), `"T"`)+","+`{"type":"file_citation","url":"https://b.example/"}`))),
			answered("A", `{"url":"https://a.example/","title":null}`, "", "false", "false", usage+"0}")},
		{"a failed call is no search", "openai", ofOpenAI("completed", `{"type":"web_search_call","status":"failed","action":{"type":"search","query":"q"}},`+message(said("A"))),
			answered("A", "", `"q"`, "false", "false", usage+"1}")},
		{"queries once, none empty", "openai", ofOpenAI("completed", `{"type":"web_search_call","action":{"type":"search","query":"z","queries":["a","","b","a"]}},`+search+","+message(said("A"))),
			answered("A", "", `"a","b","q"`, "true", "false", usage+"2}")},
		{"text of commentary is left out, with its citations", "openai", ofOpenAI("completed", `{"type":"message","phase":"final_answer","content":[`+said("B")+`]},{"type":"message","phase":"commentary","content":[`+
			cited("A", annotation("https://a.example/", `"T"`))+`]},{"type":"message","phase":"final_answer","content":[`+said("C")+`]}`), plain("BC", "0")},
		{"U+0000, noncharacters and lone surrogates", "openai", ofOpenAI("completed", message(said(`A\u0000\uFFFF\uFDD0\uD800 B\uD83D\uDE00`))),
			plain("A\ufffd\ufffd\ufffd\ufffd B😀", "0")},
		{"odd counts are not known", "openai", `{"status":"completed","model":"m-1","output":[` + message(said("A")) + `],"usage":{"input_tokens":1.5,"output_tokens":-1},"tool_usage":{"web_search":{"num_requests":2000000000}}}`,
			answered("A", "", "", "false", "false", `{"input_tokens":null,"output_tokens":null,"searches":null}`)},

		{"annotations precede marks", "perplexity", ofOpenAI("completed", `{"type":"search_results","queries":["q"],"results":[{"id":1,"url":"https://a.example/"}]},`+
			message(cited("A [1]", annotation("https://b.example/", `"B"`)))), answered("A [1]", `{"url":"https://b.example/","title":"B"}`, `"q"`, "true", "false", usage+"1}")},
		{"marks name ids, the first of equal ones", "perplexity", ofOpenAI("completed", `{"type":"search_results","results":[{"id":7,"url":"https://a.example/","title":"A"},{"id":8,"url":"https://c.example/"}]},`+
			`{"type":"search_results","results":[{"id":7,"url":"https://b.example/"},{"url":"https://d.example/"}]},`+message(said("[7] [1] [9] [7]"))),
			answered("[7] [1] [9] [7]", `{"url":"https://a.example/","title":"A"}`, "", "true", "false", usage+"2}")},

		{"pages merely seen", "xai", ofOpenAI("completed", message(cited("A", `{"type":"url_citation","url":"https://a.example/","title":"12","start_index":3,"end_index":5},`+
			`{"type":"url_citation","url":"https://b.example/","title":"https://b.example/","start_index":3,"end_index":5},{"type":"url_citation","url":"https://c.example/","title":"C","start_index":5,"end_index":5},`+
			`{"type":"url_citation","url":"https://d.example/","title":"D","start_index":0,"end_index":1}`))),
			answered("A", `{"url":"https://a.example/","title":null},{"url":"https://b.example/","title":null},{"url":"https://d.example/","title":"D"}`, "", "false", "false", usage+"0}")},
		{"queries in arguments", "xai", ofOpenAI("completed", search+`,{"type":"web_search_call","arguments":"{\"query\":\"r\"}"},{"type":"web_search_call","arguments":"{"},`+message(said("A"))),
			answered("A", "", `"q","r"`, "true", "false", usage+"3}")},

		{"text before the first search is left out", "anthropic", ofAnthropic("end_turn", `{"type":"text","text":"I search."},{"type":"server_tool_use","name":"web_search","input":{"query":"q"}},`+
			`{"type":"web_search_tool_result","content":[]},{"type":"text","text":"<cite index=\"1\">A</cite> <b>B"}`), answered("A <b>B", "", `"q"`, "true", "false", usage+"0}")},
		{"unless nothing follows", "anthropic", ofAnthropic("end_turn", `{"type":"text","text":"A"},{"type":"server_tool_use","name":"code","input":{"query":"q"}}`), plain("A", "0")},
		{"unless only tags follow", "anthropic", ofAnthropic("end_turn", `{"type":"text","text":"A"},`+
			`{"type":"server_tool_use","name":"code","input":{"query":"q"}},{"type":"text","text":" </cite>"}`), plain("A ", "0")},
		{"caches count", "anthropic", `{"model":"m-1","stop_reason":"end_turn","content":[{"type":"text","text":"A"}],"usage":{"input_tokens":1,"cache_creation_input_tokens":20,"cache_read_input_tokens":300,` +
			`"output_tokens":2,"server_tool_use":{"web_search_requests":4}}}`, answered("A", "", "", "false", "false", `{"input_tokens":321,"output_tokens":2,"searches":4}`)},

		{"without supports all chunks are cited", "gemini", ofGemini(`{"content":{"parts":[{"text":"A"}]},"groundingMetadata":{"webSearchQueries":["q",""],"groundingChunks":[{"web":{"uri":"https://a.example/","title":"A"}},{"maps":{}},{"web":{"uri":"https://b.example/"}}]}}`),
			answered("A", `{"url":"https://a.example/","title":"A"},{"url":"https://b.example/","title":null}`, `"q"`, "true", "false", usage+"1}")},
		{"order of supports", "gemini", ofGemini(`{"content":{"parts":[{"text":"A"}]},"groundingMetadata":{"groundingSupports":[{"groundingChunkIndices":[2,-1,9]},{"groundingChunkIndices":[0,2]}],"groundingChunks":[{"web":{"uri":"https://a.example/"}},{"web":{"uri":"https://b.example/"}},{"web":{"uri":"https://c.example/"}}]}}`),
			answered("A", `{"url":"https://c.example/","title":null},{"url":"https://a.example/","title":null}`, "", "true", "false", usage+"0}")},

		{"parts", "chat", ofChat(`{"message":{"content":[{"type":"text","text":"A"},{"type":"image"},{"type":"text","text":"B"}]}}`), answered("AB", "", "", "null", "false", usage+"null}")},
		{"thought", "chat", ofChat(`{"message":{"content":"\n<think>x</think>\n\nA <think>y</think>\n"}}`), answered("A <think>y</think>\n", "", "", "null", "false", usage+"null}")},
		{"thought without an end", "chat", ofChat(`{"message":{"content":"<think>A"}}`), answered("<think>A", "", "", "null", "false", usage+"null}")},
		{"listed pages that are named", "chat", `{"citations":["https://a.example/","https://b.example/",7],"search_results":[{"url":"https://b.example/","title":"B"}],` + ofChat(`{"message":{"content":"[2] [0] [4] [1] [2] [3]"}}`)[1:],
			answered("[2] [0] [4] [1] [2] [3]", `{"url":"https://b.example/","title":"B"},{"url":"https://a.example/","title":null}`, "", "true", "false", usage+"null}")},
		{"no usage", "chat", `{"choices":[{"message":{"content":"A"}}],"model":"m-1"}`, answered("A", "", "", "null", "false", "null")},
	} {
		if got, _ := settled(t, test.engine, true, canned{200, nil, test.body}); got != test.want {
			t.Errorf("%s, %s:\n got %s\nwant %s", test.name, test.engine, got, test.want)
		}
	}
}

// TestAnswersAreBounded: an answer is within the bounds of the worker interface, whatever the API sends.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	var annotations, queries []string
	for i := range 150 {
		annotations = append(annotations, fmt.Sprintf(`{"type":"url_citation","url":"https://a.example/%d","title":"%s"}`, i, strings.Repeat("é", 600)))
		queries = append(queries, fmt.Sprintf(`"%d%s"`, i, strings.Repeat("é", 600)))
	}
	text := strings.Repeat("€", 100_000)
	body := fmt.Sprintf(`{"status":"completed","model":"%s","output":[{"type":"web_search_call","action":{"type":"search","queries":[%s]}},%s]}`,
		strings.Repeat("m", 300), strings.Join(queries, ","), message(cited(text, strings.Join(annotations, ","))))
	x := newTest(t, "openai", "http://127.0.0.1:1")
	x.transport = canned{200, nil, body}
	a := x.Execute(t.Context(), testJob("m", true)).(work.Noted).Outcome.(work.Completed).Answer
	got := []int{len(a.Text), len(a.Citations), len(a.SearchQueries), len(*a.ModelVersion),
		utf8.RuneCountInString(*a.Citations[99].Title), utf8.RuneCountInString(a.SearchQueries[49])}
	if !slices.Equal(got, []int{262_143, 100, 50, 128, 512, 512}) || !a.Truncated || !strings.HasPrefix(text, a.Text) {
		t.Errorf("lengths of the text, citations, queries, version, a title and a query: %v", got)
	}
}
