package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

var docs = filepath.Join("..", "..", "docs")

// page is a file of the documentation that is made from the code.
type page struct{ name, text string }

// comparePages compares the pages of a folder with what is in the files, or writes
// them with -update. No other file may be there.
func comparePages(t *testing.T, dir, ext string, pages []page) {
	t.Helper()
	dir = filepath.Join(docs, filepath.FromSlash(dir))
	if *update {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	names := map[string]bool{}
	for _, p := range pages {
		file := filepath.Join(dir, p.name+ext)
		names[file] = true
		if *update {
			if err := os.WriteFile(file, []byte(p.text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil || string(data) != p.text {
			t.Errorf("%s is not what the code says (go test ./cmd/xol -run TestPages -update): %v", file, err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"+ext))
	for _, file := range files {
		if !names[file] {
			t.Errorf("%s: nothing makes this page any more", file)
		}
	}
}

// commands returns all commands that people see, the root first.
func commands() (all []*cobra.Command) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.DisableAutoGenTag = true
		all = append(all, cmd)
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" {
				visit(sub)
			}
		}
	}
	a := &app{color: colorChoice()}
	visit(a.rootCommand())
	return all
}

func dashed(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// TestPagesOfCommands compares the reference of commands with the commands.
func TestPagesOfCommands(t *testing.T) {
	var pages []page
	for _, cmd := range commands() {
		var b bytes.Buffer
		if err := doc.GenMarkdownCustom(cmd, &b, func(link string) string { return strings.ReplaceAll(link, "_", "-") }); err != nil {
			t.Fatal(err)
		}
		pages = append(pages, page{dashed(cmd), markdown(b.String())})
	}
	comparePages(t, "reference/commands", ".md", pages)
}

// markdown makes a page of what the library writes: with a title of the first rank,
// and with the text of a command, which is laid out for terminals, as it is.
func markdown(s string) string {
	s = regexp.MustCompile(`(?m)^##(#?) `).ReplaceAllString(s, "#$1 ")
	if before, text, ok := strings.Cut(s, "## Synopsis\n\n"); ok {
		end := strings.Index(text, "\n\n```\n")
		if next := strings.Index(text, "\n\n## "); end < 0 || next >= 0 && next < end {
			end = next
		}
		if end >= 0 {
			s = before + "```text\n" + strings.TrimSpace(text[:end]) + "\n```\n\n## Usage" + text[end:]
		}
	}
	s = strings.NewReplacer("\t - ", " - ", "## SEE ALSO", "## See also").Replace(s)
	return strings.TrimRight(s, "\n") + "\n"
}

// TestPagesOfManual compares the pages for man with the commands.
func TestPagesOfManual(t *testing.T) {
	var pages []page
	for _, cmd := range commands() {
		var b bytes.Buffer
		header := &doc.GenManHeader{Title: strings.ToUpper(dashed(cmd)), Section: "1", Source: "xol", Manual: "xol", Date: new(time.Time)}
		// What is laid out for terminals stays as it is, in lines of its own.
		cmd.Long = indented(cmd.Long)
		if err := doc.GenMan(cmd, header, &b); err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(b.String(), `"Jan 0001"`, `""`)
		pages = append(pages, page{dashed(cmd), text})
	}
	comparePages(t, "man", ".1", pages)
}

// indented makes preformatted text of paragraphs that are tables: those with a line
// that starts with spaces.
func indented(s string) string {
	paragraphs := strings.Split(s, "\n\n")
	for i, p := range paragraphs {
		lines := strings.Split(p, "\n")
		if slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "  ") }) {
			paragraphs[i] = "```\n" + p + "\n```"
		}
	}
	return strings.Join(paragraphs, "\n\n")
}
