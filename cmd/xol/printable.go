package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable returns s with every character that a terminal would not show as
// it is (a control sequence, a line end, bytes that are no text) written as Go
// would: \x1b, \n, \u202e. Names come from files that may want to do harm.
func printable(s string) string {
	s, _ = printableWidth(s)
	return s
}

// printableWidth returns what printable does, and how many characters that has.
func printableWidth(s string) (text string, width int) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' {
			text = escaped(s)
			return text, utf8.RuneCountInString(text)
		}
	}
	return s, len(s)
}

func escaped(s string) string {
	var b strings.Builder
	for i, size := 0, 0; i < len(s); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1, !unicode.IsPrint(r):
			quoted := strconv.Quote(s[i : i+size])
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteString(s[i : i+size])
		}
	}
	return b.String()
}
