package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// A sample is a request in one language. It reads BASE and KEY from the environment.
type sample struct {
	Language string
	ID       string
	Text     string
}

// samplesOf writes the request of an example, in the form of the gateway, in each language.
func samplesOf(e *Example) []sample {
	if e.Method == "GET" {
		path, query, _ := strings.Cut(e.Address, "?")
		address := "?path=" + path
		// The parameters of the route follow the parameter path.
		if query != "" {
			address += "&" + query
		}
		return []sample{
			{"curl", "curl", "curl \"$BASE" + address + "\" \\\n  -H \"Authorization: Bearer $KEY\""},
			{"Go", "go", getGo(address)}, {"Python", "python", getPython(path, query)}, {"JavaScript", "javascript", getJavaScript(path, query)},
		}
	}
	// Writes have an envelope. A write whose example has no body gets an empty one, because the envelope requires it.
	body := e.Request
	if body == nil {
		body = json.RawMessage("{}")
	}
	envelope := fmt.Sprintf(`{"path":%q,"method":%q,"body":%s}`, e.Address, e.Method, body)
	return []sample{
		{"curl", "curl", postCurl(e.Key, envelope)}, {"Go", "go", postGo(e.Key, envelope)},
		{"Python", "python", postPython(e.Key, envelope)}, {"JavaScript", "javascript", postJavaScript(e.Key, envelope)},
	}
}

// ifKey returns the line that sets the Idempotency-Key, or nothing if the route takes none.
func ifKey(key, format string) string {
	if key == "" {
		return ""
	}
	return fmt.Sprintf(format, key)
}

// postCurl puts the envelope between apostrophes, so examples must not contain one.
func postCurl(key, envelope string) string {
	return "curl \"$BASE\" \\\n  -H \"Authorization: Bearer $KEY\" \\\n  -H \"Content-Type: application/json\" \\\n" +
		ifKey(key, "  -H \"Idempotency-Key: %s\" \\\n") + "  -d '" + indented(envelope, "  ") + "'"
}

const goHead = `package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
`

const goTail = `	req.Header.Set("Authorization", "Bearer "+os.Getenv("KEY"))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Status, string(body))
}`

// getGo returns a Go program that sends a read. postGo, getPython and the others below return programs for writes
// and for other languages.
func getGo(address string) string {
	return goHead + `)

func main() {
	req, err := http.NewRequest("GET", os.Getenv("BASE")+"` + address + `", nil)
	if err != nil {
		log.Fatal(err)
	}
` + goTail
}

// postGo puts the envelope into a raw string, so examples must not contain a backquote.
func postGo(key, envelope string) string {
	return goHead + `	"strings"
)

const envelope = ` + "`" + indented(envelope, "") + "`" + `

func main() {
	req, err := http.NewRequest("POST", os.Getenv("BASE"), strings.NewReader(envelope))
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
` + ifKey(key, "\treq.Header.Set(\"Idempotency-Key\", %q)\n") + goTail
}

func getPython(path, query string) string {
	return `import os, requests

response = requests.get(
    os.environ["BASE"],
    params=` + pairs(path, query) + `,
    headers={"Authorization": "Bearer " + os.environ["KEY"]},
    timeout=30,
)
print(response.status_code, response.json())`
}

func postPython(key, envelope string) string {
	// Each string is one token, so words inside strings are not replaced.
	literal := token.ReplaceAllStringFunc(indented(envelope, "    "), func(value string) string {
		if python, ok := pythonConstants[value]; ok {
			return python
		}
		return value
	})
	return `import os, requests

response = requests.post(
    os.environ["BASE"],
    headers={
        "Authorization": "Bearer " + os.environ["KEY"],
` + ifKey(key, "        \"Idempotency-Key\": %q,\n") + `    },
    json=` + literal + `,
    timeout=30,
)
print(response.status_code, response.text)`
}

// pythonConstants are the JSON values that Python writes differently.
var pythonConstants = map[string]string{"true": "True", "false": "False", "null": "None"}

func getJavaScript(path, query string) string {
	return `const query = new URLSearchParams(` + pairs(path, query) + `);
const response = await fetch(process.env.BASE + "?" + query, {
  headers: { Authorization: "Bearer " + process.env.KEY },
});
console.log(response.status, await response.json());`
}

func postJavaScript(key, envelope string) string {
	return `const response = await fetch(process.env.BASE, {
  method: "POST",
  headers: {
    Authorization: "Bearer " + process.env.KEY,
    "Content-Type": "application/json",
` + ifKey(key, "    \"Idempotency-Key\": %q,\n") + `  },
  body: JSON.stringify(` + indented(envelope, "  ") + `),
});
console.log(response.status, await response.text());`
}

// pairs writes the parameters of a read as a literal of Python and JavaScript.
func pairs(path, query string) string {
	s := fmt.Sprintf(`{"path": %q`, path)
	if query != "" {
		for pair := range strings.SplitSeq(query, "&") {
			name, v, _ := strings.Cut(pair, "=")
			// The libraries of these languages escape the values themselves.
			plain, err := url.QueryUnescape(v)
			if err != nil {
				panic(err)
			}
			s += fmt.Sprintf(", %q: %q", name, plain)
		}
	}
	return s + "}"
}

// indented returns JSON with indentation; prefix begins each line but the first.
func indented(raw, prefix string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(raw), prefix, "  "); err != nil {
		panic(err)
	}
	return b.String()
}
