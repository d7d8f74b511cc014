// Words finds what is not plain English in comments, messages and pages: words of
// place where order is meant, and some others that make a dialect.
//
//	go run ./scripts/words [FOLDER]
//
// It reads Go and C files, Markdown, scripts and the Makefile, but for testdata. In
// Go it looks at comments and at strings of several words; names are left alone.
// Exit status: 0 if there is none, 1 if there are some, 2 for an error.
package main

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// words are what is not to be used, and what says it plainly.
var words = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{word(`behind`), "after"},
	{word(`in front of`), "before"},
	{word(`amid(st)?`), "during, inside or among"},
	{word(`nobody`), "no CPU, nothing, or who it is"},
	{word(`whatever there is`), "what it is"},
}

// word matches words, also where a line of a comment ends between them.
func word(s string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b` + strings.ReplaceAll(s, " ", `[\s/*#]+`) + `\b`)
}

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	found, err := check(os.Stdout, root)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(2)
	case found > 0:
		os.Exit(1)
	}
}

// check reports the words in the files of a folder and returns how many there are.
func check(w io.Writer, root string) (found int, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if name == "testdata" || path != root && strings.HasPrefix(name, ".") || filepath.Base(filepath.Dir(path)) == "scripts" && name == "words" {
				return filepath.SkipDir
			}
			return nil
		}
		parts := prose(path)
		if parts == nil {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || bytes.HasPrefix(text, []byte("\x7fELF")) {
			return err
		}
		parts(text, func(line int, part string) {
			for i := range words {
				for _, at := range words[i].pattern.FindAllStringIndex(part, -1) {
					found++
					fmt.Fprintf(w, "%s:%d: %q: say %s\n", path, line+strings.Count(part[:at[0]], "\n"), part[at[0]:at[1]], words[i].instead)
				}
			}
		})
		return nil
	})
	return found, err
}

// prose returns what takes the prose out of a file of that name, nil where it is
// not read. It calls its argument with each part and the line where that starts.
func prose(path string) func(text []byte, part func(line int, text string)) {
	name := filepath.Base(path)
	switch filepath.Ext(name) {
	case ".go":
		return goProse
	case ".md", ".c", ".h", ".mk":
		return wholeText
	case "":
		if name == "Makefile" || filepath.Base(filepath.Dir(path)) == "scripts" {
			return wholeText
		}
	}
	return nil
}

func wholeText(text []byte, part func(int, string)) { part(1, string(text)) }

// goProse finds comments, those on lines of their own together, and strings of
// several words.
func goProse(text []byte, part func(int, string)) {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	comment, start, last := "", 0, 0
	flush := func() {
		if comment != "" {
			part(start, comment)
		}
		comment = ""
	}
	for {
		pos, kind, literal := s.Scan()
		line := file.Line(pos)
		switch {
		case kind == token.COMMENT && comment != "" && line == last+1:
			comment += "\n" + literal
			last = line + strings.Count(literal, "\n")
			continue
		case kind == token.COMMENT:
			flush()
			comment, start, last = literal, line, line+strings.Count(literal, "\n")
			continue
		case kind == token.SEMICOLON && literal == "\n":
			continue
		}
		flush()
		if kind == token.STRING && strings.Contains(literal, " ") {
			part(line, literal)
		}
		if kind == token.EOF {
			return
		}
	}
}
