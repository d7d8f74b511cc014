package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// style is an SGR sequence of ANSI terminals.
type style string

const (
	plain  style = ""
	bold   style = "\x1b[1m"
	dim    style = "\x1b[2m"
	red    style = "\x1b[31m"
	green  style = "\x1b[32m"
	yellow style = "\x1b[33m"
	cyan   style = "\x1b[36m"

	styleEnd = "\x1b[0m"
)

func colorChoice() choice { return choiceOf("auto", "always", "never") }

// palette says whether to paint.
type palette bool

// palette returns what --color and the environment ask for.
func (a *app) palette() palette {
	switch a.color.value {
	case "always":
		return true
	case "never":
		return false
	}
	return palette(isTerminal(a.out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
