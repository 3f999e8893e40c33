package engines

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"aiv/cmd/aiv/internal/work"
)

// Explain writes the first request that a job would send, with KEY for the key. It sends nothing.
func (x *Executor) Explain(w io.Writer, job work.Job, withKey, asJSON bool) error {
	key := ""
	// The placeholder shows the header in which a key would be sent.
	if withKey {
		key = "KEY"
	}
	// The request is made as for a job, so that what is printed is what would be sent.
	r, body, err := x.newRequest(context.Background(), x.prompt(&job), key)
	if err != nil {
		return err
	}
	if asJSON {
		headers := object{}
		for _, name := range headerNames(r.Header) {
			headers = append(headers, member{strings.ToLower(name), r.Header.Get(name)})
		}
		text, err := encode(object{{"method", r.Method}, {"url", r.URL.String()}, {"headers", headers},
			{"body", json.RawMessage(body)}})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n", text)
		return err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s %s HTTP/1.1\n", r.Method, r.URL)
	for _, name := range headerNames(r.Header) {
		fmt.Fprintf(&text, "%s: %s\n", name, r.Header.Get(name))
	}
	text.WriteByte('\n')
	if err := json.Indent(&text, body, "", "  "); err != nil {
		return err
	}
	text.WriteByte('\n')
	_, err = w.Write(text.Bytes())
	return err
}

// headerNames returns the names in the order of the alphabet.
func headerNames(h http.Header) (names []string) {
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// SampleJob is what Explain and a try ask unless they are given a job.
func SampleJob(providerModel string) work.Job {
	return work.Job{
		MeasurementType: "grounded", MethodologyVersion: "AIVM-1.0", Model: work.Model{ProviderModel: providerModel},
		Question: work.Question{Text: "Which running shoes are best for beginners?", Language: "it", Country: "IT"},
		Locale:   "it-IT", Country: "IT", Language: "it",
	}
}

// Address returns the host and the port that requests go to.
func (x *Executor) Address() string {
	u, err := url.Parse(x.base)
	if err != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
