// Site makes a static site of the pages in docs/: plain HTML that needs no script, for
// reading in a browser. The pages stay readable as they are.
//
//	go run . -in ../../docs -out ../../dist/site
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
)

//go:embed page.html
var layout string

func main() {
	in := flag.String("in", "docs", "the `FOLDER` of the pages")
	out := flag.String("out", "dist/site", "the `FOLDER` of the site")
	flag.Parse()
	if err := run(*in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// content is what the layout shows.
type content struct {
	Title string
	Root  string // the way to the first page
	Body  template.HTML
}

func run(in, out string) error {
	page, err := template.New("page").Parse(layout)
	if err != nil {
		return err
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	made := 0
	err = filepath.WalkDir(in, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(in, file)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		to := filepath.Join(out, rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if filepath.Ext(file) != ".md" {
			return os.WriteFile(to, data, 0o644)
		}
		made++
		return writePage(page, markdown, filepath.ToSlash(rel), data, out)
	})
	if err == nil && made == 0 {
		err = errors.New("there is no page in " + in)
	}
	return err
}

var (
	title = regexp.MustCompile(`(?m)^# (.*)$`)
	// links are those to other pages. What leads out of the folder is left as text.
	links   = regexp.MustCompile(`(href="[^":]*)\.md([#"])`)
	outside = regexp.MustCompile(`<a href="[^":]*\.\./[^":]*">(.*?)</a>`)
)

func writePage(layout *template.Template, markdown goldmark.Markdown, rel string, text []byte, out string) error {
	var body bytes.Buffer
	if err := markdown.Convert(text, &body); err != nil {
		return fmt.Errorf("%s: %w", rel, err)
	}
	depth := strings.Count(rel, "/")
	c := content{Title: "xol", Root: strings.Repeat("../", depth)}
	if m := title.FindSubmatch(text); m != nil {
		c.Title = string(m[1])
	}
	html := outside.ReplaceAllStringFunc(body.String(), func(a string) string {
		if leaves(a, depth) {
			return outside.FindStringSubmatch(a)[1]
		}
		return a
	})
	html = links.ReplaceAllString(html, "$1.html$2")
	html = strings.ReplaceAll(html, "README.html", "index.html")
	c.Body = template.HTML(html) // made of our own pages
	name := strings.TrimSuffix(rel, ".md") + ".html"
	if path.Base(rel) == "README.md" {
		name = path.Join(path.Dir(rel), "index.html")
	}
	f, err := os.Create(filepath.Join(out, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	if err := layout.Execute(f, c); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// leaves reports whether a link goes up more folders than the page is deep.
func leaves(a string, depth int) bool {
	href := strings.TrimPrefix(a, `<a href="`)
	return strings.Count(href[:strings.IndexByte(href, '"')], "../") > depth
}
