package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// A sample is a request in one language. BASE and KEY are taken from the environment.
type sample struct {
	Language string
	ID       string
	Text     string
}

// samplesOf writes an example's request through the gateway in each language.
func samplesOf(e *Example) []sample {
	if e.Method == "POST" {
		envelope := object{{"path", e.Address}, {"method", e.Method}, {"body", e.Body}}
		compact, err := json.Marshal(envelope)
		if err != nil {
			panic(err)
		}
		return []sample{
			{"curl", "curl", postCurl(e, compact)}, {"Go", "go", postGo(e, compact)},
			{"Python", "python", postPython(e, compact)}, {"JavaScript", "javascript", postJavaScript(e, compact)},
		}
	}
	path, query, _ := strings.Cut(e.Address, "?")
	address := "?path=" + path
	if query != "" {
		address += "&" + query
	}
	return []sample{
		{"curl", "curl", fmt.Sprintf("curl \"$BASE%s\" \\\n  -H \"Authorization: Bearer $KEY\"", address)},
		{"Go", "go", getGo(address)}, {"Python", "python", getPython(path, query)}, {"JavaScript", "javascript", getJavaScript(path, query)},
	}
}

func postCurl(e *Example, envelope []byte) string {
	return fmt.Sprintf("curl \"$BASE\" \\\n  -H \"Authorization: Bearer $KEY\" \\\n  -H \"Content-Type: application/json\" \\\n  -H \"Idempotency-Key: %s\" \\\n  -d '%s'",
		e.Key, indented(envelope, "  "))
}

const goTail = `	req.Header.Set("Authorization", "Bearer "+os.Getenv("KEY"))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Status, string(answer))
}`

func getGo(address string) string {
	return `package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	req, err := http.NewRequest("GET", os.Getenv("BASE")+"` + address + `", nil)
	if err != nil {
		log.Fatal(err)
	}
` + goTail
}

func postGo(e *Example, envelope []byte) string {
	return `package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

const envelope = ` + "`" + indented(envelope, "") + "`" + `

func main() {
	req, err := http.NewRequest("POST", os.Getenv("BASE"), strings.NewReader(envelope))
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "` + e.Key + `")
` + goTail
}

func getPython(path, query string) string {
	return `import os, requests

answer = requests.get(
    os.environ["BASE"],
    params=` + pairs(path, query) + `,
    headers={"Authorization": "Bearer " + os.environ["KEY"]},
    timeout=30,
)
print(answer.status_code, answer.json())`
}

// postPython writes the envelope as a dictionary: none of its values is spelled otherwise in Python.
func postPython(e *Example, envelope []byte) string {
	return `import os, requests

answer = requests.post(
    os.environ["BASE"],
    headers={
        "Authorization": "Bearer " + os.environ["KEY"],
        "Idempotency-Key": "` + e.Key + `",
    },
    json=` + indented(envelope, "    ") + `,
    timeout=30,
)
print(answer.status_code, answer.json())`
}

func getJavaScript(path, query string) string {
	return `const query = new URLSearchParams(` + pairs(path, query) + `);
const answer = await fetch(process.env.BASE + "?" + query, {
  headers: { Authorization: "Bearer " + process.env.KEY },
});
console.log(answer.status, await answer.json());`
}

func postJavaScript(e *Example, envelope []byte) string {
	return `const answer = await fetch(process.env.BASE, {
  method: "POST",
  headers: {
    Authorization: "Bearer " + process.env.KEY,
    "Content-Type": "application/json",
    "Idempotency-Key": "` + e.Key + `",
  },
  body: JSON.stringify(` + indented(envelope, "  ") + `),
});
console.log(answer.status, await answer.json());`
}

// pairs writes the parameters of a read as Python and JavaScript both write them.
func pairs(path, query string) string {
	s := `{"path": "` + path + `"`
	if query != "" {
		for pair := range strings.SplitSeq(query, "&") {
			name, v, _ := strings.Cut(pair, "=")
			plain, err := url.QueryUnescape(v)
			if err != nil {
				panic(err)
			}
			s += fmt.Sprintf(", %q: %q", name, plain)
		}
	}
	return s + "}"
}

func indented(raw []byte, prefix string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, prefix, "  "); err != nil {
		panic(err)
	}
	return b.String()
}
