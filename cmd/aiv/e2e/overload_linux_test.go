package e2e

import (
	"bufio"
	"fmt"
	"math"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"aiv/store/storetest"
)

// maxMemory bounds the memory of a process, whatever its clients do.
const maxMemory = 256 << 20

// memoryBound is maxMemory for processes whose memory is mostly in use: the race detector multiplies that, and on a
// busy machine garbage is collected late.
func memoryBound() int {
	switch {
	case raceEnabled:
		return 10 * maxMemory // it takes 5 to 10 times as much [go.dev/doc/articles/race_detector]
	case storetest.Long():
		return maxMemory
	}
	return maxMemory * 3 / 2
}

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

	var mu sync.Mutex
	var took []time.Duration // of what was admitted
	shed := 0
	windows, statuses := make(map[string]int), make(map[int]int)
	ask := func(c int) {
		conn, err := net.Dial("tcp", p.host())
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		responses := bufio.NewReader(conn)
		for n := 0; n < requests && (!storetest.Long() || time.Now().Before(end)); n++ {
			request := wireGet("?path=/v1/me", key.Key)
			switch c % 4 {
			case 0:
				request = wireGet("?path=/v1/me", small.Key)
			case 1:
				request = wirePost(fmt.Sprintf("overload-%d-%d", c, n), key.Key, testRun)
			}
			sent := time.Now()
			w, body, err := exchangeOne(conn, responses, request)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			statuses[w.StatusCode]++
			switch {
			case w.StatusCode == 200 || w.StatusCode == 202:
				took = append(took, time.Since(sent))
				if c%4 == 0 {
					windows[w.Header.Get("X-RateLimit-Reset")]++
				}
			case w.StatusCode == 429 && w.Header.Get("Retry-After") != "":
			case w.StatusCode == 503 && strings.Contains(body, "overloaded") && w.Header.Get("Retry-After") != "":
				shed++
			case w.StatusCode == 503 && strings.Contains(body, "unavailable"): // waited for the lock in vain
			default:
				t.Errorf("got %d %s", w.StatusCode, body)
			}
			mu.Unlock()
		}
	}
	var wg, watching sync.WaitGroup
	var slowestAdmin time.Duration
	over := make(chan struct{})
	watching.Go(func() { slowestAdmin = p.watchAdmin(t, over) })
	holdLock(t, url, `LOCK TABLE api_rate_limit_buckets IN EXCLUSIVE MODE`, func() {
		for c := range connections {
			wg.Go(func() { ask(c) })
		}
		storetest.Eventually(t, "requests are refused", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return shed > 0
		})
	})
	wg.Wait()
	close(over)
	watching.Wait()
	ended := time.Now()
	storetest.Eventually(t, "service is normal", func() bool {
		sent := time.Now()
		a := p.get(t, "?path=/v1/runs&limit=5", key.Key)
		return a.status == 200 && (!storetest.Long() || time.Since(sent) < 200*time.Millisecond)
	})
	if took := time.Since(ended); storetest.Long() && took > 5*time.Second {
		t.Errorf("service was normal only after %v", took)
	}
	if len(took) == 0 {
		t.Fatal("nothing was served")
	}
	slices.Sort(took)
	p99, longest := took[len(took)*99/100], took[len(took)-1]
	if storetest.Long() && (longest > 10*time.Second || p99 > 5*time.Second || slowestAdmin > 2*time.Second) {
		t.Errorf("admitted requests took up to %v, 99%% of them %v; the admin listener %v", longest, p99, slowestAdmin)
	}
	for reset, admitted := range windows {
		if admitted > faultLimit {
			t.Errorf("%d were admitted to the window until %s, the limit is %d", admitted, reset, faultLimit)
		}
	}
	t.Logf("overload: statuses %v; admitted took %v (99%%), %v (longest); memory %d MiB; admin within %v",
		statuses, p99, longest, p.memory(t, maxMemory), slowestAdmin)
}

// watchAdmin polls /livez and /readyz, and returns the longest time of a response. In the short form /readyz, which asks
// the database, may fail now and then.
func (p *process) watchAdmin(t *testing.T, over <-chan struct{}) (slowest time.Duration) {
	for {
		for _, path := range []string{"/livez", "/readyz"} {
			storetest.Eventually(t, path+" succeeds", func() bool {
				sent := time.Now()
				a := p.asAdmin(t, "GET", path, "")
				slowest = max(slowest, time.Since(sent))
				if a.status != 200 && (path == "/livez" || storetest.Long()) {
					t.Errorf("%s: %d %s", path, a.status, a.body)
				}
				return a.status == 200
			})
		}
		select {
		case <-over:
			return slowest
		case <-time.After(100 * time.Millisecond):
		}
	}
}
