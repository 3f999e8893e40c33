package gateway

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"aiv/runs/jobs"
	"aiv/store"
)

// filledExchange is an exchange of a golden file, with values in the place of its names: what a client could have seen.
type filledExchange struct {
	file    string
	request *http.Request
	body    []byte
	answers []answer
}

type answer struct {
	status  int
	headers [][2]string
	body    []byte
}

// code returns the code of a problem, "" for a success.
func (a *answer) code() string {
	if m := regexp.MustCompile(`"code":"(\w+)"`).FindSubmatch(a.body); m != nil && a.status >= 400 {
		return string(m[1])
	}
	return ""
}

var exchangesRead []filledExchange // by the first test that needs them; none of these is parallel

// goldenExchanges returns the exchanges of all golden files, in the order of the files, as they are after TestGolden.
func goldenExchanges(t *testing.T) []filledExchange {
	t.Helper()
	if exchangesRead != nil {
		return exchangesRead
	}
	for _, file := range goldenFiles(t) {
		text := readGolden(t, file)
		n, keys := newNames(), make(map[string]string)
		for _, name := range placeholder.FindAllString(text, -1) {
			switch kind, arg, _ := strings.Cut(strings.Trim(name, "{}"), ":"); kind {
			case "key":
				keys[arg] = "aiv_live_" + arg
			case "worker":
				keys[kind+":"+arg] = "aiv_work_" + arg
			case "fresh": // has the length of a random one
				sum := sha256.Sum256([]byte("key " + arg))
				n.fresh[arg] = base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])
			default:
				n.values[name] = exampleValue(name)
			}
		}
		for _, e := range parseStory(t, text).exchanges {
			f := filledExchange{file: file}
			var err error
			f.request, err = http.ReadRequest(bufio.NewReader(bytes.NewReader(n.wire(t, e.request, keys))))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			f.body, _ = io.ReadAll(f.request.Body) // one announces more than it sends
			for section := range strings.SplitSeq(e.responses, "-- response") {
				if _, text, ok := strings.Cut(section, "--\n"); ok {
					f.answers = append(f.answers, readAnswer(t, text))
				}
			}
			exchangesRead = append(exchangesRead, f)
		}
	}
	return exchangesRead
}

func readAnswer(t *testing.T, text string) (a answer) {
	t.Helper()
	head, body, _ := strings.Cut(strings.TrimRight(fill(text), "\n"), "\n\n")
	lines := strings.Split(head, "\n")
	var err error
	if a.status, err = strconv.Atoi(strings.Fields(lines[0])[1]); err != nil {
		t.Fatal(err)
	}
	for _, l := range lines[1:] {
		name, v, _ := strings.Cut(l, ": ")
		a.headers = append(a.headers, [2]string{name, v})
	}
	a.body = []byte(body)
	return a
}

// exampleTime is when all examples happen.
var exampleTime = time.Date(2026, 3, 2, 9, 30, 15, 123456000, time.UTC)

// fill puts values in the place of a response's names. Of a window one request is spent, or all are.
func fill(response string) string {
	left := "0"
	if m := regexp.MustCompile(`(?m)^X-RateLimit-Limit: (\d+)$`).FindStringSubmatch(response); m != nil && !strings.Contains(response, " 429 ") {
		limit, _ := strconv.Atoi(m[1])
		left = strconv.Itoa(limit - 1)
	}
	next := exampleTime.Truncate(time.Minute).Add(time.Minute)
	response = strings.NewReplacer("{left}", left, "{seconds}", strconv.Itoa(int(next.Sub(exampleTime).Seconds())+1),
		"{reset}", strconv.FormatInt(next.Unix(), 10), "{time}", exampleTime.Format("2006-01-02T15:04:05.000000Z"),
		"{each}", exampleValue("{request1}")).Replace(response)
	return regexp.MustCompile(`\{[a-z]+[0-9]+\}`).ReplaceAllStringFunc(response, exampleValue)
}

// exampleValue is what a server might have made where a golden file has the name, the same each time.
func exampleValue(name string) string {
	sum := sha256.Sum256([]byte(name))
	class := strings.TrimRight(strings.Trim(name, "{}"), "0123456789")
	for prefix, c := range idNames {
		if c == class {
			id := store.ID(sum[:16])
			for i, ms := 5, exampleTime.UnixMilli(); i >= 0; i, ms = i-1, ms>>8 {
				id[i] = byte(ms)
			}
			id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
			return id.Text(prefix)
		}
	}
	switch class {
	case "prefix":
		return "aiv_live_" + hex.EncodeToString(sum[:4])
	case "secret":
		return "whsec_" + base64.StdEncoding.EncodeToString(sum[:])
	case "job":
		return jobs.Key{Account: store.ID(sum[:16]), Run: store.ID(sum[16:]), Ordinal: 1}.String()
	case "month":
		return exampleTime.Format("2006-01")
	case "cursor":
		return base64.RawURLEncoding.EncodeToString(append([]byte{1}, append(sum[:], sum[:8]...)...))
	case "etag":
		return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	}
	return name // JSON that looks like one
}
