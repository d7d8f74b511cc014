package guest

import (
	"go/build"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackagesAreDocumentedWithoutTags looks at every package of the module as
// go doc does, which knows no build tags.
func TestPackagesAreDocumentedWithoutTags(t *testing.T) {
	packages := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); name == "testdata" || name != ".." && strings.HasPrefix(name, ".") {
			return filepath.SkipDir
		}
		if files, _ := filepath.Glob(filepath.Join(path, "*.go")); len(files) == 0 {
			return nil
		}
		packages++
		p, err := build.ImportDir(path, build.ImportComment)
		if err != nil || p.Doc == "" {
			t.Errorf("%s: go doc finds nothing: %v", path, err)
		}
		return nil
	})
	if err != nil || packages < 20 {
		t.Errorf("%d packages, %v", packages, err)
	}
}
