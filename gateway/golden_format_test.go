package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"aiv/cmd/aiv/capability"
)

// A story is a golden file: what it shows, then requests and the responses they get.
//
//	One sentence.
//	fault: database_away                  (a directive: what to break; such files run against this process only)
//	minute: one                           (a directive: all exchanges must fall into one minute of the rate limit)
//
//	-- request --
//	POST /external-api-v1
//	Authorization: Bearer {key:full}
//	Idempotency-Key: {fresh:a}
//
//	{"path":"/v1/runs", …}
//	-- response --
//	HTTP/1.1 202 Accepted
//	…
//
// "-- request x8 --" is sent eight times at once; equal responses are written once, as "-- response x7 --". In a
// request {key:NAME} is a key of the fixture, {worker:NAME} the token of a worker, {fresh:NAME} an unused idempotency
// key, {repeat:S:N} N times S, {byte:ff} that byte, and {run1} the value that an earlier response had there.
//
// Requests whose path begins with /worker/ are sent to the worker interface. A file whose runs are worked uses the
// model golden/worked, which no other file uses, and leaves no jobs of it waiting.
type story struct {
	about     string
	fault     string
	oneMinute bool
	exchanges []step
}

type step struct {
	mark      string
	request   string
	times     int // at once
	responses string
}

var (
	requestMark = regexp.MustCompile(`(?m)^-- request(?: x(\d+))? --\n`)
	faultLine   = regexp.MustCompile(`(?m)^fault: (\w+)$`)
	minuteLine  = regexp.MustCompile(`(?m)^minute: one$`)

	// toWorkers matches the first line of a request that is sent to the worker interface.
	toWorkers = regexp.MustCompile(`(?m)^[A-Z]+ /worker/`)
)

func parseStory(t *testing.T, text string) story {
	t.Helper()
	marks, sections := requestMark.FindAllStringSubmatch(text, -1), requestMark.Split(text, -1)
	if marks == nil {
		t.Fatal("no request section")
	}
	s := story{about: sections[0], oneMinute: minuteLine.MatchString(sections[0])}
	if m := faultLine.FindStringSubmatch(s.about); m != nil {
		s.fault = m[1]
	}
	for i, mark := range marks {
		e := step{mark: mark[0], request: sections[i+1], times: 1}
		if mark[1] != "" {
			e.times, _ = strconv.Atoi(mark[1])
		}
		if i := strings.Index(e.request, "-- response"); i >= 0 {
			e.request, e.responses = e.request[:i], e.request[i:]
		}
		s.exchanges = append(s.exchanges, e)
	}
	return s
}

func (s *story) String() string {
	text := s.about
	for _, e := range s.exchanges {
		text += e.mark + e.request + e.responses
	}
	return text
}

var placeholder = regexp.MustCompile(`\{(key|worker|fresh|repeat|byte):([^{}]*)\}|\{[a-z]+[0-9]+\}`)

// ownLength matches the headers of a request that says itself how long its body is.
var ownLength = regexp.MustCompile(`(?im)^(content-length|transfer-encoding):`)

// wire turns the text of a request into the bytes that are sent.
func (n *names) wire(t testing.TB, text string, keys map[string]string) []byte {
	t.Helper()
	text = strings.TrimSuffix(text, "\n")
	text = placeholder.ReplaceAllStringFunc(text, func(p string) string {
		kind, arg, ok := strings.Cut(strings.Trim(p, "{}"), ":")
		if !ok {
			if v, ok := n.values[p]; ok {
				return v
			}
			return p // JSON may look like one
		}
		switch kind {
		case "key", "worker":
			key := keys[strings.TrimPrefix(kind+":"+arg, "key:")]
			if key == "" {
				t.Fatalf("there is no %s %q", kind, arg)
			}
			return key
		case "fresh":
			n.fresh[arg] = cmp.Or(n.fresh[arg], rand.Text())
			return n.fresh[arg]
		case "repeat":
			what, times, _ := strings.Cut(arg, ":")
			count, err := strconv.Atoi(times)
			must(t, err)
			return strings.Repeat(what, count)
		}
		b, err := strconv.ParseUint(arg, 16, 8)
		must(t, err)
		return string([]byte{byte(b)})
	})
	head, body, hasBody := strings.Cut(text, "\n\n")
	first, headers, hasHeaders := strings.Cut(head, "\n")
	lines := []string{first + " HTTP/1.1", "Host: golden.test", "Connection: close"}
	if hasHeaders {
		lines = append(lines, strings.Split(headers, "\n")...)
	}
	if hasBody && !ownLength.MatchString(head) {
		lines = append(lines, fmt.Sprint("Content-Length: ", len(body)))
	}
	return []byte(strings.Join(lines, "\r\n") + "\r\n\r\n" + body)
}

// names replaces values made by the server by names, numbered by first appearance, so that responses can be compared
// and repeated ids must be equal.
type names struct {
	byValue map[string]string
	values  map[string]string
	counts  map[string]int
	fresh   map[string]string
}

func newNames() *names {
	return &names{map[string]string{}, map[string]string{}, map[string]int{}, map[string]string{}}
}

// idNames are the names of ids by their prefixes: all prefixes of capabilities, and two whose ids are stored as text.
var idNames = func() map[string]string {
	names := map[string]string{"req": "request", "q": "question"}
	for name, prefix := range capability.Prefixes() {
		names[prefix] = name
	}
	return names
}()

var (
	typeIDs = regexp.MustCompile(`\b(` + strings.Join(slices.Collect(maps.Keys(idNames)), "|") + `)_[0-9a-hjkmnp-tv-z]{26}\b`)
	times   = regexp.MustCompile(`\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z`)
	// The group of a pattern is a value of the class.
	classes = []struct {
		class   string
		pattern *regexp.Regexp
	}{
		{"job", regexp.MustCompile(`\b(job_[0-9a-hjkmnp-tv-z]{58})\b`)},
		{"prefix", regexp.MustCompile(`\b(aiv_live_[0-9A-Za-z]{8})\b`)},
		{"secret", regexp.MustCompile(`(whsec_[0-9A-Za-z+/]{43}=)`)},
		{"cursor", regexp.MustCompile(`(?:cursor=|set cursor to |next_cursor\\?":\\?")([0-9A-Za-z_-]{20,})`)},
		{"etag", regexp.MustCompile(`(?m)^ETag: (".*")$`)},
		{"month", regexp.MustCompile(`"month":"(20\d\d-\d\d)"`)},
	}
	// The state of a window depends on other requests with the key, and on the clock.
	volatile = []struct {
		pattern *regexp.Regexp
		text    string
	}{
		{regexp.MustCompile(`("title":"AI visibility","version":")[^"]*`), "${1}{version}"},
		{regexp.MustCompile(`(?m)^(RateLimit: "minute";)r=\d+;t=\d+$`), "${1}r={left};t={seconds}"},
		{regexp.MustCompile(`(?m)^(X-RateLimit-Remaining: )\d+$`), "${1}{left}"},
		{regexp.MustCompile(`(?m)^(X-RateLimit-Reset: )\d+$`), "${1}{reset}"},
		// A deployment may have attempted a delivery to the hosts of the golden files, which do not exist.
		{regexp.MustCompile(`("status":"pending","attempts":)\d+(,"last_status":null,"last_error":)(null|"connection"|"timeout")`), "${1}0${2}null"},
		{regexp.MustCompile(`(?s)^(HTTP/1.1 429 .*\nRetry-After: )\d+`), "${1}{seconds}"},
	}
)

func (n *names) of(class, value string) string {
	if n.byValue[value] == "" {
		n.counts[class]++
		name := fmt.Sprintf("{%s%d}", class, n.counts[class])
		n.byValue[value], n.values[name] = name, value
	}
	return n.byValue[value]
}

// rename replaces the values in a response that the server made.
func (n *names) rename(response string) string {
	for _, v := range volatile {
		response = v.pattern.ReplaceAllString(response, v.text)
	}
	response = typeIDs.ReplaceAllStringFunc(response, func(id string) string {
		return n.of(idNames[id[:strings.IndexByte(id, '_')]], id)
	})
	for _, c := range classes {
		response = c.pattern.ReplaceAllStringFunc(response, func(text string) string {
			value := c.pattern.FindStringSubmatch(text)[1]
			return strings.Replace(text, value, n.of(c.class, value), 1)
		})
	}
	return times.ReplaceAllString(response, "{time}")
}

// format returns the responses of one request: equal ones once, the rarest first.
func (n *names) format(responses []string) string {
	if len(responses) == 1 {
		return "-- response --\n" + n.rename(responses[0])
	}
	count := make(map[string]int)
	for _, r := range responses {
		r = regexp.MustCompile(`\breq_[0-9a-z]{26}\b`).ReplaceAllString(r, "{each}")
		count[n.rename(r)]++
	}
	rarestFirst := func(a, b string) int { return cmp.Or(count[a]-count[b], strings.Compare(a, b)) }
	var b strings.Builder
	for _, r := range slices.SortedFunc(maps.Keys(count), rarestFirst) {
		fmt.Fprintf(&b, "-- response x%d --\n%s", count[r], r)
	}
	return b.String()
}

// readResponse reads a response from the wire and writes it as a golden file has it: without the date and the length,
// the other headers in alphabetical order, spelled as they were sent.
func readResponse(r io.Reader, method string) (string, error) {
	var sent bytes.Buffer
	response, err := http.ReadResponse(bufio.NewReader(io.TeeReader(r, &sent)), &http.Request{Method: method})
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	head, _, _ := strings.Cut(sent.String(), "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	headers := slices.DeleteFunc(lines[1:], func(line string) bool {
		name, _, _ := strings.Cut(line, ":")
		return name == "Date" || name == "Content-Length" || name == "Connection"
	})
	slices.Sort(headers)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", lines[0], strings.Join(headers, "\n"))
	if len(body) > 0 {
		b.WriteString("\n" + string(body) + "\n")
	}
	b.WriteString("\n")
	return b.String(), nil
}
