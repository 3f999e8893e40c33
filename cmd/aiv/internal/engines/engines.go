// Package engines has the built-in clients of answer engines. An engine is the client of one API; the provider whose
// jobs it answers stays an entry of the operator's catalog.
//
// Each engine is one file with two functions without side effects: a prompt to the body of a request, and a response to
// a reading, which may ask for another request. What they share is here once: the key (key.go), sending and its bounds
// (send.go), the course of a job (execute.go), the meaning of errors (faults.go, errors.go) and the bounds of an answer
// (answer.go). A new engine costs its file, its test data, and its row in the table below.
//
// Command aiv work uses it as the Executor of package work. It owns no table. What an API returns is data: it is
// bounded, checked and stored, and never decides where a request goes.
package engines

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"aiv/store"
)

// An engine is the client of one API.
type engine struct {
	name string
	base string // the address without -engine-url; empty: -engine-url is required
	env  string // the variable that contains the key; empty: none, and requests need no key
	// path returns the path of a request below the base address. Some APIs have the model in it, others in the body.
	path func(model string) string

	// keyHeader is the header with the key, and keyPrefix precedes the key in it.
	keyHeader, keyPrefix string
	header               [2]string // one more header; empty: none

	// body returns the body of the request. Its members stand in the order in which they are sent: operators read and
	// compare requests (-explain).
	body func(*prompt) object
	// read reads the body of a response with the status 200. An error is what the answer lacks.
	read func(*prompt, response) (reading, error)
	// adapt returns the prompt that replaces one that the API rejected, or nil. It is nil if there is no such.
	adapt func(*prompt, *apiError) *prompt

	optionalLimit bool // the output limit is sent only if the operator gave it
	links         bool // citations may be redirecting links
}

// The APIs, each from its own reference (OPERATING.md names them).
var engines = []engine{
	{name: "openai", base: "https://api.openai.com/v1", env: "OPENAI_API_KEY", path: at("/responses"),
		keyHeader: "Authorization", keyPrefix: "Bearer ", body: openaiBody, read: readOpenAI},
	{name: "anthropic", base: "https://api.anthropic.com", env: "ANTHROPIC_API_KEY", path: at("/v1/messages"),
		keyHeader: "X-Api-Key", header: [2]string{"Anthropic-Version", "2023-06-01"},
		body: anthropicBody, read: readAnthropic, adapt: adaptAnthropic},
	{name: "gemini", base: "https://generativelanguage.googleapis.com/v1beta", env: "GEMINI_API_KEY", path: geminiPath,
		keyHeader: "X-Goog-Api-Key", body: geminiBody, read: readGemini, links: true},
	{name: "perplexity", base: "https://api.perplexity.ai", env: "PERPLEXITY_API_KEY", path: at("/v1/agent"),
		keyHeader: "Authorization", keyPrefix: "Bearer ", body: perplexityBody, read: readPerplexity},
	{name: "xai", base: "https://api.x.ai/v1", env: "XAI_API_KEY", path: at("/responses"),
		keyHeader: "Authorization", keyPrefix: "Bearer ", body: xaiBody, read: readXAI},
	{name: "chat", path: at("/chat/completions"),
		keyHeader: "Authorization", keyPrefix: "Bearer ", body: chatBody, read: readChat, optionalLimit: true},
}

// at returns a path function for an API whose path does not depend on the model.
func at(path string) func(string) string { return func(string) string { return path } }

// Names returns the names of the engines.
func Names() (names []string) {
	for i := range engines {
		names = append(names, engines[i].name)
	}
	return names
}

// KeyVariable returns the environment variable that contains the key of an engine, or "" if the engine needs no key.
func KeyVariable(name string) string { return find(name).env }

// find returns the engine with one of the Names. It panics on any other name: aiv work checks -engine first.
func find(name string) *engine {
	return &engines[slices.IndexFunc(engines, func(e engine) bool { return e.name == name })]
}

// CheckURL returns why an engine cannot use an address, or nil. Without TLS the network could read the key and change
// answers, so http is only for this machine, and for servers that get no key.
func CheckURL(name, address string, hasKey bool) error {
	if address == "" {
		if find(name).base == "" {
			return errors.New("is required: the base address of the server, such as http://127.0.0.1:11434/v1")
		}
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		strings.ContainsAny(address, "?#") || !isPort(u.Port()) {
		return errors.New("must be http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]")
	}
	// Only chat can be used without a key; the other engines always send one.
	if u.Scheme == "http" && !store.IsLoopback(u.Hostname()) && (name != "chat" || hasKey) {
		return errors.New("must begin with https://, except for loopback hosts and for chat without a key")
	}
	return nil
}

// isPort reports whether a connection can be made to a port; "" is the default port of the scheme.
func isPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}
