package e2e

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

// TestFaultFlood: a client tries keys as fast as the process responds. Malformed keys cost no statement; well-formed
// ones cost at most one read. A client with a valid key is served at the same time.
func TestFaultFlood(t *testing.T) {
	t.Parallel()
	guesses, asks := 400, 100
	if storetest.Long() {
		guesses, asks = 20_000, 5_000
	}
	url, pool, _, key := databaseOfCustomer(t, 1_000_000)
	garbage := func() string {
		return key.Key[:len(key.Key)-6] + fmt.Sprintf("%06d", time.Now().Nanosecond()%1_000_000)
	}

	var alone, beside time.Duration // of the valid client's requests
	startUp := statements(t, url, pool, func(p *process) {})
	valid := statements(t, url, pool, func(p *process) { alone = p.askOften(t, key.Key, asks) }).minus(startUp)
	if valid.all < asks*9/10 { // a session that has just ended may count in the next period
		t.Fatalf("%d requests by one client cost %d statements: the counter does not count", asks, valid.all)
	}
	for _, flood := range []struct {
		name    string
		guess   func() string
		share   int // of the guesses, one in how many may cost a statement
		looksUp bool
	}{
		{"garbage", garbage, 4, false}, // the background, such as checks of idle connections, costs some
		{"well-formed unknown keys", unknownKey, 1, true},
	} {
		var refused atomic.Int64
		cost := statements(t, url, pool, func(p *process) {
			stop := make(chan struct{})
			var attackers sync.WaitGroup
			for range 64 {
				attackers.Go(func() { p.guess(t, flood.guess, &refused, stop) })
			}
			beside = p.askOften(t, key.Key, asks)
			storetest.Eventually(t, "keys are refused", func() bool { return refused.Load() >= int64(guesses) })
			close(stop)
			attackers.Wait()
		}).minus(startUp).minus(valid)
		if most := int(refused.Load()) / flood.share; cost.all > most || !flood.looksUp && cost.lookups > 5 {
			t.Errorf("%d of %s cost %d statements and %d lookups of keys, want at most %d; lookups: %v",
				refused.Load(), flood.name, cost.all, cost.lookups, most, flood.looksUp)
		}
		t.Logf("%d of %s: %+v beyond the valid client's, which is answered %d times in %v, and alone in %v",
			refused.Load(), flood.name, cost, asks, beside, alone)
	}
}

// A cost is a number of transactions, and of searches in the table of keys.
type cost struct{ all, lookups int }

func (c cost) minus(d cost) cost { return cost{c.all - d.all, c.lookups - d.lookups} }

// statements counts the transactions of the database while a process runs. PostgreSQL reports all of them when the
// sessions have ended.
func statements(t *testing.T, url string, pool *pgxpool.Pool, during func(*process)) cost {
	t.Helper()
	count := func() cost {
		waitUntil(t, url, `SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'counted'`)
		return cost{
			number(t, pool, `
				SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()`),
			number(t, pool, `SELECT seq_scan + idx_scan FROM pg_stat_user_tables WHERE relname = 'credentials'`),
		}
	}
	before := count()
	p := startServe(t, url+"&application_name=counted")
	during(p)
	if err := p.stop(); err != nil {
		t.Errorf("aiv serve ended with %v", err)
	}
	return count().minus(before)
}

// askOften asks with a valid key, one request after the other, and returns how long that took.
func (p *process) askOften(t *testing.T, key string, times int) time.Duration {
	t.Helper()
	began := time.Now()
	for range times {
		if a := p.get(t, "?path=/v1/me", key); a.status != 200 {
			t.Errorf("a valid key got %d %s", a.status, a.body)
		}
	}
	return time.Since(began)
}

// guess tries keys over one connection.
func (p *process) guess(t *testing.T, next func() string, refused *atomic.Int64, stop <-chan struct{}) {
	conn, err := net.Dial("tcp", p.host())
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		select {
		case <-stop:
			return
		default:
		}
		io.WriteString(conn, wireGet("?path=/v1/me", next()))
		w, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		body, _ := io.ReadAll(w.Body)
		if w.StatusCode != 401 || !strings.Contains(string(body), "invalid_api_key") {
			t.Errorf("a guess got %d %s", w.StatusCode, body)
			return
		}
		refused.Add(1)
	}
}

// unknownKey returns a well-formed key that was not issued.
func unknownKey() string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	written := func(n *big.Int, length int) string {
		b := make([]byte, length)
		for i := length - 1; i >= 0; i-- {
			var digit big.Int
			n.DivMod(n, big.NewInt(62), &digit)
			b[i] = digits[digit.Int64()]
		}
		return string(b)
	}
	random := make([]byte, 32)
	rand.Read(random)
	body := "aiv_live_" + written(new(big.Int).SetBytes(random), 43)
	return body + written(big.NewInt(int64(crc32.ChecksumIEEE([]byte(body)))), 6)
}
