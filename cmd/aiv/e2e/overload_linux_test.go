package e2e

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/store/storetest"
)

// maxMemory bounds the memory of a process, whatever its clients do.
const maxMemory = 256 << 20

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// memory returns the peak memory of the process in MiB, and fails the test if that is above a bound in bytes.
func (p *process) memory(t *testing.T, bound int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	must(t, err)
	n, err := strconv.Atoi(string(highWater.FindSubmatch(status)[1]))
	must(t, err)
	if n<<10 > bound {
		t.Errorf("%s used %d MiB of memory", p.cmd, n>>10)
	}
	return n >> 10
}

// TestFaultOverload sends from many more connections than can be served at once, as fast as each gets responses: each
// gets a number of them, or as many as it can in the long form, which bounds how long they take. At first the database
// is blocked, so that more requests wait than may: the excess is refused at once. It is not parallel, because it
// measures the process.
func TestFaultOverload(t *testing.T) {
	connections, requests := byForm(200, 2000), byForm(5, math.MaxInt)
	url, _, account, key := databaseOfCustomer(t)
	small := newKey(t, url, account, faultLimit)
	p := startServe(t, url, "-waiting", fmt.Sprint(connections/4))
	end := time.Now().Add(time.Minute) // of the long form
	many := &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	defer many.CloseIdleConnections()

	var mu sync.Mutex
	var took []time.Duration // of what was admitted
	windows, outcomes := make(map[string]int), make(map[string]int)
	ask := func(c, n int) error {
		method, query, token, body := "GET", "?path=/v1/me", key.Key, ""
		switch c % 4 {
		case 0:
			token = small.Key
		case 1:
			method, query, body = "POST", "", testRun
		}
		sent := time.Now()
		a, err := request(t.Context(), many, method, p.base+query, token, fmt.Sprintf("overload-%d-%d", c, n), body)
		if err != nil {
			return err
		}
		outcome := fmt.Sprint(a.status)
		if a.status == 503 {
			outcome = member(t, a.body, "code") // unavailable: it has waited for the lock in vain
		}
		mu.Lock()
		defer mu.Unlock()
		outcomes[outcome]++
		switch outcome {
		case "200", "202":
			took = append(took, time.Since(sent))
			if c%4 == 0 {
				windows[a.header.Get("X-RateLimit-Reset")]++
			}
		case "429", "overloaded", "unavailable":
			if a.header.Get("Retry-After") == "" {
				return fmt.Errorf("%s without Retry-After", outcome)
			}
		default:
			return fmt.Errorf("got %d %s", a.status, a.body)
		}
		return nil
	}
	var wg, watching sync.WaitGroup
	var slowestAdmin time.Duration
	var over atomic.Bool
	watching.Go(func() {
		for ; !over.Load(); <-time.After(100 * time.Millisecond) {
			sent := time.Now()
			if a := p.asAdmin(t, "GET", "/livez", ""); a.status != 200 {
				t.Errorf("/livez: %d %s", a.status, a.body)
			}
			slowestAdmin = max(slowestAdmin, time.Since(sent))
		}
	})
	holdLock(t, url, `LOCK TABLE api_rate_limit_buckets IN EXCLUSIVE MODE`, func() {
		for c := range connections {
			wg.Go(func() {
				for n := 0; n < requests && (!storetest.Long() || time.Now().Before(end)); n++ {
					if err := ask(c, n); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		storetest.Eventually(t, "requests are refused", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return outcomes["overloaded"] > 0
		})
	})
	wg.Wait()
	over.Store(true)
	watching.Wait()
	ended := time.Now()
	storetest.Eventually(t, "service is normal", func() bool {
		sent := time.Now()
		a := p.get(t, "?path=/v1/runs&limit=5", key.Key)
		return a.status == 200 && (!storetest.Long() || time.Since(sent) < 200*time.Millisecond)
	})
	normal := time.Since(ended)
	if len(took) == 0 {
		t.Fatal("nothing was served")
	}
	slices.Sort(took)
	p99, longest := took[len(took)*99/100], took[len(took)-1]
	if storetest.Long() && (longest > 10*time.Second || p99 > 5*time.Second || slowestAdmin > 2*time.Second || normal > 5*time.Second) {
		t.Errorf("admitted requests took up to %v, 99%% of them %v; the admin listener %v; normal after %v", longest, p99, slowestAdmin, normal)
	}
	for reset, admitted := range windows {
		if admitted > faultLimit {
			t.Errorf("%d were admitted to the window until %s, the limit is %d", admitted, reset, faultLimit)
		}
	}
	t.Logf("overload: %v; admitted took %v (99%%), %v (longest); memory %d MiB", outcomes, p99, longest, p.memory(t, maxMemory))
}
