package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	inv := xol("version", "")
	if !regexp.MustCompile(`^xol \S+ go\S+ \w+/\w+( unicorn \d+\.\d+\.\d+)?\n$`).MatchString(inv.stdout) || inv.status != 0 {
		t.Errorf("status %d, %q", inv.status, inv.stdout)
	}
}

func TestHelp(t *testing.T) {
	for _, command := range []string{"--help", "analyze --help", "explain --help", "decode --help", "version --help", "completion --help"} {
		inv := xol(command, "")
		if inv.status != 0 || inv.stderr != "" || !strings.Contains(inv.stdout, "Usage:\n  xol") {
			t.Errorf("%s: status %d, %q\n%s", command, inv.status, inv.stderr, inv.stdout)
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	for shell, want := range map[string]string{
		"bash": "complete -o default", "zsh": "#compdef xol", "fish": "complete -c xol", "powershell": "Register-ArgumentCompleter",
	} {
		inv := xol("completion "+shell, "")
		if inv.status != 0 || !strings.Contains(inv.stdout, want) {
			t.Errorf("%s: status %d, no %q in %d bytes", shell, inv.status, want, len(inv.stdout))
		}
	}
}

func TestCompletionOfValues(t *testing.T) {
	for _, c := range []struct{ typed, want string }{
		{"explain testdata/amd64.elf v", "vectors"},
		{"explain testdata/kernel.elf vfs_", "vfs_read vfs_write"},
		{"explain testdata/amd64.elf nosuch", ""},
		{"explain testdata/absent ''", ""},
		{"explain testdata/amd64.elf main vec", "vectors"},
		{"decode --arch ''", "amd64 arm64 ppc64 ppc64le"},
		{"analyze --profile ''", "isa linux-5.10 linux-6.1 linux-6.12 linux-7.3 uprobe-linux-5.10 uprobe-linux-5.10.262 uprobe-linux-6.1 uprobe-linux-6.12 uprobe-linux-6.16 uprobe-linux-6.17 uprobe-linux-6.18 uprobe-linux-6.19 uprobe-linux-7.0 uprobe-linux-7.1 uprobe-linux-7.2 uprobe-linux-7.3"},
		{"analyze --output ''", "table json jsonl csv"},
		{"explain --output ''", "table json"},
		{"version --color ''", "auto always never"},
		{"completion ''", "bash zsh fish powershell"},
	} {
		lines := strings.Fields(xol("__complete "+c.typed, "").stdout)
		var values []string
		for _, line := range lines {
			if strings.HasPrefix(line, ":") { // the directive ends the list
				break
			}
			values = append(values, line)
		}
		if got := strings.Join(values, " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.typed, got, c.want)
		}
	}
}

// TestColour looks for colours in what goes to something that is no terminal.
func TestColour(t *testing.T) {
	for _, command := range []string{"analyze testdata/amd64.elf", "explain testdata/amd64.elf main", "decode --arch amd64 90"} {
		plainly := xol(command, "").stdout
		if strings.Contains(plainly, "\x1b[") || xol(command+" --color never", "").stdout != plainly {
			t.Errorf("%s: colours without a terminal", command)
		}
		t.Setenv("NO_COLOR", "1")
		painted := xol(command+" --color always", "").stdout
		if !strings.Contains(painted, "\x1b[") {
			t.Errorf("%s: --color always does not win over NO_COLOR", command)
		}
		if bare := regexp.MustCompile("\x1b\\[\\d*m").ReplaceAllString(painted, ""); trimLines(bare) != trimLines(plainly) {
			t.Errorf("%s: colours change the text:\n%s\nwant\n%s", command, bare, plainly)
		}
	}
}

// trimLines takes the spaces off the ends of lines.
func trimLines(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n")
}
