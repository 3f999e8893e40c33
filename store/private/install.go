package private

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// installHint returns the command that installs a PostgreSQL server of a major version or, for 0, of the platform's
// default version. It is empty on unknown platforms.
func installHint(major int) string {
	release, _ := os.ReadFile("/etc/os-release") // an error: unknown distribution
	return installCommand(runtime.GOOS, string(release), major, os.Geteuid() == 0)
}

func installCommand(goos, release string, major int, root bool) string {
	version := ""
	if major != 0 {
		version = fmt.Sprint(major)
	}
	if goos == "darwin" {
		if major == 0 {
			version = "17" // Homebrew has no package without a version
		}
		return "brew install postgresql@" + version
	}
	sudo := "sudo "
	if root {
		sudo = ""
	}
	// ID, then the distributions that it is derived from, closest first.
	for _, id := range strings.Fields(osRelease(release, "ID") + " " + osRelease(release, "ID_LIKE")) {
		switch id {
		case "debian", "ubuntu":
			if version != "" {
				version = "-" + version
			}
			return sudo + "apt-get install postgresql" + version
		case "fedora", "rhel", "centos":
			return sudo + "dnf install postgresql" + version + "-server"
		case "alpine":
			return sudo + "apk add postgresql" + version
		case "arch":
			return sudo + "pacman -S postgresql"
		case "suse", "opensuse":
			return sudo + "zypper install postgresql" + version + "-server"
		}
	}
	return ""
}

// osRelease reads a value of os-release(5).
func osRelease(text, name string) string {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && key == name {
			return strings.Trim(value, `"'`)
		}
	}
	return ""
}
