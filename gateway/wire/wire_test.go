package wire

import (
	"testing"
	"time"

	"aiv/store"
)

func TestMembersOfWireTypes(t *testing.T) {
	at, text := time.Date(2026, 1, 2, 4, 4, 5, 6007, time.FixedZone("", 3600)), `"{[<é`
	b := append([]byte{}, '{')
	b = Text(b, "text", text)
	b = TextOrNull(b, "given", &text)
	b = TextOrNull(b, "absent", nil)
	b = Texts(b, "texts", []string{"[", text})
	b = Texts(b, "none", []string{})
	b = Texts(b, "nil", nil)
	b = Int(b, "int", -1)
	b = ID(b, "id", "run", store.ID{})
	b = append(Member(b, "object"), '{')
	b = Time(b, "time", at)
	b = TimeOrNull(b, "given", &at)
	b = TimeOrNull(b, "absent", nil)
	b = append(b, "}}"...)
	const want = `{"text":"\"{[<é","given":"\"{[<é","absent":null,"texts":["[","\"{[<é"],"none":[],"nil":null,"int":-1,` +
		`"id":"run_00000000000000000000000000","object":{"time":"2026-01-02T03:04:05.000006Z","given":"2026-01-02T03:04:05.000006Z","absent":null}}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}
