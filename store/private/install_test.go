package private_test

import (
	"testing"

	"aiv/store/private"
)

func TestInstallCommand(t *testing.T) {
	for _, test := range []struct {
		goos, release string
		major         int
		root          bool
		want          string
	}{
		{"linux", "ID=debian\n", 0, true, "apt-get install postgresql"},
		{"linux", "NAME=\"Ubuntu\"\nID=ubuntu\nID_LIKE=debian\n", 16, false, "sudo apt-get install postgresql-16"},
		{"linux", "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", 0, false, "sudo apt-get install postgresql"},
		{"linux", "ID=fedora\n", 0, false, "sudo dnf install postgresql-server"},
		{"linux", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", 15, true, "dnf install postgresql15-server"},
		{"linux", "ID=alpine\n", 16, true, "apk add postgresql16"},
		{"linux", "ID=arch\n", 0, false, "sudo pacman -S postgresql"},
		{"linux", "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n", 0, true, "zypper install postgresql-server"},
		{"linux", "ID=mine\n", 0, true, ""},
		{"darwin", "", 0, false, "brew install postgresql@17"},
		{"darwin", "", 15, false, "brew install postgresql@15"},
	} {
		got := private.InstallCommand(test.goos, test.release, test.major, test.root)
		if got != test.want {
			t.Errorf("%s, %q, %d: got %q, want %q", test.goos, test.release, test.major, got, test.want)
		}
	}
}
