package enginestest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// An api is what one API takes, and how it answers.
type api struct {
	base    string // of the path
	path    func(path string) (model string, ok bool)
	headers map[string]string
	form    form
	reject  func(model string, body map[string]any) *fault // what a form cannot say

	keyHeader, keyPrefix string
	keyless              bool // a request may have no key
	keyFault             fault
	unknownMember        func(path string) string
	errorBody            func(f *fault) any

	short string // the body of an answer
}

// model returns the model that the path names, or "" if the body names it, and whether the API has the path.
func (a *api) model(r *http.Request) (string, bool) {
	return a.path(strings.TrimPrefix(r.URL.Path, a.base))
}

// badKey repeats a part of the key, as APIs do.
func (a *api) badKey(key string) *fault {
	f := a.keyFault
	if len(key) > 8 {
		f.text += ": " + key[:4] + "***" + key[len(key)-4:]
	}
	return &f
}

// unknown returns the fault of a member that the API does not know or that does not fit its form.
func (a *api) unknown(path string) *fault { return invalid("%s", a.unknownMember(path)) }

// fail sends a fault in the form of the API's errors.
func (a *api) fail(w http.ResponseWriter, f *fault) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	json.NewEncoder(w).Encode(a.errorBody(f))
}

// exactly returns a path function for an API whose path does not name the model.
func exactly(path string) func(string) (string, bool) {
	return func(p string) (string, bool) { return "", p == path }
}

type object = map[string]any

// orNull returns nil, which is encoded as null, for an empty text.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// openaiError returns the body of an error as OpenAI and compatible servers send it.
func openaiError(f *fault) any {
	return object{"error": object{
		"message": f.text, "type": cmp.Or(f.kind, "invalid_request_error"), "param": nil, "code": orNull(f.code)}}
}

// toolsTogether rejects a choice of a tool without tools.
func toolsTogether(_ string, body map[string]any) *fault {
	if (body["tools"] == nil) != (body["tool_choice"] == nil) {
		return invalid("tool_choice requires tools")
	}
	return nil
}

// apis are the fakes by the names of the engines. The links are the documents that they follow. Each short answer names
// the invented brand Kovalt, and cites it if the API can cite.
var apis = map[string]api{
	// https://platform.openai.com/docs/api-reference/responses
	"openai": {
		base: "/v1", path: exactly("/responses"), keyHeader: "Authorization", keyPrefix: "Bearer ",
		keyFault: fault{401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided"},
		form: form{fields{"model": text, "instructions": text, "input": text, "store": false, "max_output_tokens": count,
			"tools?":       []any{fields{"type": "web_search", "user_location": fields{"type": "approximate", "country": country}}},
			"tool_choice?": "required"}},
		reject:        toolsTogether,
		unknownMember: func(path string) string { return "Unknown parameter: '" + path + "'." },
		errorBody:     openaiError,
		short: `{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"model":"gpt-6-sol",
 "output":[{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"shoes","queries":["shoes"]}},
  {"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Kovalt.","logprobs":[],
   "annotations":[{"type":"url_citation","start_index":0,"end_index":6,"url":"https://kovalt.example/?utm_source=openai","title":"Kovalt"}]}]}],
 "usage":{"input_tokens":100,"output_tokens":20,"total_tokens":120},"tool_usage":{"web_search":{"num_requests":1}}}`,
	},
	// https://docs.claude.com/en/api/messages
	"anthropic": {
		path: exactly("/v1/messages"), keyHeader: "X-Api-Key", headers: map[string]string{"Anthropic-Version": "2023-06-01"},
		keyFault: fault{401, "authentication_error", "", "invalid x-api-key"},
		form: form{fields{"model": text, "max_tokens": count, "system": text,
			"messages": either{
				[]any{fields{"role": "user", "content": text}},
				[]any{fields{"role": "user", "content": text}, fields{"role": "assistant", "content": blocks}}},
			"tools?": []any{fields{"type": "web_search_20250305", "name": "web_search", "max_uses": count,
				"user_location?": fields{"type": "approximate", "country": country}}},
			"tool_choice?": either{fields{"type": "tool", "name": "web_search"}, fields{"type": "auto"}}}},
		reject:        rejectAnthropic,
		unknownMember: func(path string) string { return path + ": Extra inputs are not permitted" },
		errorBody: func(f *fault) any {
			kind := cmp.Or(f.kind, "invalid_request_error")
			return object{"type": "error", "error": object{"type": kind, "message": f.text}, "request_id": "req_1"}
		},
		short: `{"id":"msg_1","type":"message","role":"assistant","model":"claude-haiku-4-5-20251001","stop_reason":"end_turn","content":[
 {"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"shoes"}},
 {"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","url":"https://kovalt.example/","title":"Kovalt","encrypted_content":"x"}]},
 {"type":"text","text":"Kovalt.","citations":[{"type":"web_search_result_location","url":"https://kovalt.example/","title":"Kovalt","encrypted_index":"x"}]}],
 "usage":{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":20,"server_tool_use":{"web_search_requests":1}}}`,
	},
	// https://ai.google.dev/api/generate-content
	"gemini": {
		base: "/v1beta",
		path: func(p string) (string, bool) {
			model, ok := strings.CutSuffix(strings.TrimPrefix(p, "/models/"), ":generateContent")
			return model, ok && strings.HasPrefix(p, "/models/") && model != ""
		},
		keyHeader: "X-Goog-Api-Key",
		keyFault:  fault{400, "INVALID_ARGUMENT", "API_KEY_INVALID", "API key not valid. Please pass a valid API key."},
		form: form{fields{"systemInstruction": fields{"parts": []any{fields{"text": text}}},
			"contents":         []any{fields{"role": "user", "parts": []any{fields{"text": text}}}},
			"generationConfig": fields{"maxOutputTokens": count}, "tools?": []any{fields{"google_search": fields{}}}}},
		unknownMember: func(path string) string {
			return `Invalid JSON payload received. Unknown name "` + path + `": Cannot find field.`
		},
		errorBody: func(f *fault) any {
			e := object{"code": f.status, "message": f.text, "status": cmp.Or(f.kind, "INVALID_ARGUMENT")}
			if f.code != "" {
				e["details"] = []any{object{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": f.code, "domain": "googleapis.com"}}
			}
			return object{"error": e}
		},
		short: `{"candidates":[{"content":{"role":"model","parts":[{"text":"Kovalt."}]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["shoes"],
 "groundingChunks":[{"web":{"uri":"https://vertexaisearch.cloud.google.com/grounding-api-redirect/A","title":"kovalt.com"}}],
 "groundingSupports":[{"segment":{"endIndex":7,"text":"Kovalt."},"groundingChunkIndices":[0]}]}}],
 "usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":20,"totalTokenCount":120},"modelVersion":"gemini-3.8-flash","responseId":"r"}`,
	},
	// https://docs.perplexity.ai/api-reference/agent-post
	"perplexity": {
		path: exactly("/v1/agent"), keyHeader: "Authorization", keyPrefix: "Bearer ",
		keyFault: fault{401, "forbidden", "", "Invalid API key"},
		form: form{fields{"model": text,
			"input":                []any{fields{"type": "message", "role": "system", "content": text}, fields{"type": "message", "role": "user", "content": text}},
			"language_preference?": text, "max_output_tokens": count, "store": false,
			"tools?":       []any{fields{"type": "web_search", "user_location": fields{"country": country}}},
			"tool_choice?": fields{"type": "web_search"}}},
		reject: func(model string, body map[string]any) *fault {
			if language, ok := body["language_preference"].(string); ok && len(language) != 2 {
				return invalid("language_preference must be an ISO 639-1 code")
			}
			return toolsTogether(model, body)
		},
		unknownMember: func(path string) string { return `unknown field "` + path + `"` },
		errorBody: func(f *fault) any {
			return object{"error": object{"message": f.text, "type": cmp.Or(f.kind, "invalid_request"), "code": f.status}}
		},
		short: `{"id":"resp_1","object":"response","status":"completed","error":null,"model":"perplexity/sonar","output":[
 {"type":"search_results","queries":["shoes"],"results":[{"id":1,"url":"https://kovalt.example/","title":"Kovalt","snippet":"…"}]},
 {"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Kovalt [1].","annotations":[]}]}],
 "usage":{"input_tokens":100,"output_tokens":20,"total_tokens":120,"tool_calls_details":{"search_web":{"invocation":1}}}}`,
	},
	// https://docs.x.ai/docs/api-reference
	"xai": {
		base: "/v1", path: exactly("/responses"), keyHeader: "Authorization", keyPrefix: "Bearer ",
		keyFault: fault{400, "", "Client specified an invalid argument", "Incorrect API key provided"},
		form: form{fields{"model": text, "input": []any{fields{"role": "system", "content": text}, fields{"role": "user", "content": text}},
			"store": false, "max_output_tokens": count, "tools?": []any{fields{"type": "web_search"}}, "tool_choice?": "required"}},
		reject:        toolsTogether,
		unknownMember: func(path string) string { return "Argument not supported: " + path },
		errorBody: func(f *fault) any {
			return object{"code": cmp.Or(f.code, "Client specified an invalid argument"), "error": f.text}
		},
		short: `{"id":"0d9e","object":"response","status":"completed","error":null,"incomplete_details":null,"model":"grok-4.7","output":[
 {"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"shoes"}},
 {"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Kovalt [[1]](https://kovalt.example/).",
  "annotations":[{"type":"url_citation","url":"https://kovalt.example/","title":"1","start_index":7,"end_index":37}]}]}],
 "usage":{"input_tokens":100,"output_tokens":20,"server_side_tool_usage_details":{"web_search_calls":1}}}`,
	},
	// https://platform.openai.com/docs/api-reference/chat
	"chat": {
		base: "/v1", path: exactly("/chat/completions"), keyHeader: "Authorization", keyPrefix: "Bearer ", keyless: true,
		keyFault: fault{401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided"},
		form: form{fields{"model": text, "messages": []any{fields{"role": "system", "content": text}, fields{"role": "user", "content": text}},
			"stream": false, "max_tokens?": count}},
		unknownMember: func(path string) string { return "Unknown parameter: '" + path + "'." },
		errorBody:     openaiError,
		short: `{"id":"chatcmpl-1","object":"chat.completion","model":"local-7b-q4","choices":[{"index":0,"message":{"role":"assistant","content":"Kovalt."},
 "logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`,
	},
}

// Countries are those that the search tool of Anthropic takes here. The API does not take all.
var Countries = []string{"DE", "FR", "IT", "US"}

// rejectAnthropic rejects what depends on the model: those whose name begins with free cannot be forced to use a tool.
// A turn that goes on cannot be forced either, and its blocks must be those that the API sent.
func rejectAnthropic(model string, body map[string]any) *fault {
	if f := toolsTogether(model, body); f != nil {
		return f
	}
	if body["tools"] == nil {
		return nil
	}
	choice := body["tool_choice"].(object)["type"]
	if choice == "tool" && strings.HasPrefix(model, "free") {
		return invalid(`tool_choice: type "tool" and "any" are not supported for this model.`)
	}
	if len(body["messages"].([]any)) > 1 && choice != "auto" {
		return invalid("tool_choice: a paused turn cannot be forced")
	}
	location, ok := body["tools"].([]any)[0].(object)["user_location"].(object)
	if ok && !slices.Contains(Countries, location["country"].(string)) {
		return invalid("tools.0.web_search_20250305: Country code %s is not supported.", location["country"])
	}
	return nil
}
