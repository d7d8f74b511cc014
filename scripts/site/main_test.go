package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSite makes the site of the project's own pages, in which no link leads nowhere.
func TestSite(t *testing.T) {
	out := t.TempDir()
	if err := run(filepath.Join("..", "..", "docs"), out); err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`href="([^"#:]+)`)
	pages := 0
	err := filepath.WalkDir(out, func(file string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".html" {
			return err
		}
		pages++
		html, err := os.ReadFile(file)
		for _, m := range links.FindAllSubmatch(html, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), string(m[1]))); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", file, m[1])
			}
		}
		return err
	})
	if err != nil || pages < 20 {
		t.Errorf("%d pages, error %v", pages, err)
	}
	index, err := os.ReadFile(filepath.Join(out, "index.html"))
	if err != nil || !strings.Contains(string(index), `<a href="tutorial.html">a tutorial`) {
		t.Errorf("error %v, index.html %.200s", err, index)
	}
}

func TestNoPages(t *testing.T) {
	if err := run(t.TempDir(), t.TempDir()); err == nil {
		t.Error("a folder without pages makes a site")
	}
}
