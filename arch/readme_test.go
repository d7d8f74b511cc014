package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readmeFile matches a file in one of README.md's tables, with its folder where
// not all ISAs have it.
var readmeFile = regexp.MustCompile("(?m)^\\| `(?:(\\w+)/)?(\\w+\\.go)` \\|")

// folders are those of the ISAs that are supported.
var folders = []string{"amd64", "arm64", "ppc64"}

// TestReadmeNamesEveryFile compares the tables of README.md with the files.
func TestReadmeNamesEveryFile(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range readmeFile.FindAllStringSubmatch(string(page), -1) {
		named[filepath.Join(m[1], m[2])] = false
	}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			base := filepath.Base(file)
			_, shared := named[base]
			_, own := named[file]
			switch {
			case strings.HasSuffix(base, "_test.go"):
			case own:
				named[file] = true
			case shared:
				named[base] = true
			case !strings.Contains(base, "_") || !named[strings.SplitN(base, "_", 2)[0]+".go"]:
				t.Errorf("README.md does not say what is in %s", file)
			}
		}
	}
	for name, found := range named {
		if !found {
			t.Errorf("README.md speaks of %s, which there is not", name)
		}
	}
}

// TestToyHasTheFilesOfAnISA compares the toy's files with those that README.md
// lists for the interface ISA.
func TestToyHasTheFilesOfAnISA(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	lacks := []string{"uprobe.go"} // it knows no kernel
	for line := range strings.Lines(string(page)) {
		m := readmeFile.FindStringSubmatch(line)
		if m == nil || m[1] != "" || !strings.HasSuffix(strings.TrimSpace(line), "| `ISA` |") || slices.Contains(lacks, m[2]) {
			continue
		}
		if _, err := os.Stat(filepath.Join("internal", "toy", m[2])); err != nil {
			t.Errorf("the toy lacks what README.md says that an ISA starts with: %v", err)
		}
	}
}
