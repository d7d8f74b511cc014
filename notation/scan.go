package notation

import "strings"

// isBpftrace reports whether text is a bpftrace script: something stands in braces
// after attach points.
func isBpftrace(text string) bool {
	s := scanner{text: text, line: 1}
	head, _, ok := s.block()
	for ok {
		for _, point := range splitHead(head) {
			if findProvider(splitAttachPoint(point.text)[0]) != nil {
				return true
			}
		}
		head, _, ok = s.block()
	}
	return false
}

// bpftraceScript reads the attach points of a script.
func bpftraceScript(text string) []Line {
	s := scanner{text: text, line: 1}
	var lines []Line
	for {
		head, line, ok := s.block()
		if !ok {
			return lines
		}
		if isDeclaration(head) {
			continue
		}
		for _, point := range splitHead(head) {
			lines = appendLine(lines, line+point.line, point.text, parseAttachPoint)
		}
	}
}

// isDeclaration reports whether the block after head is no action of a probe.
func isDeclaration(head string) bool {
	words := strings.Fields(head)
	if len(words) == 0 {
		return true
	}
	switch words[0] {
	case "struct", "union", "enum", "typedef", "config", "macro", "fn", "import":
		return true
	}
	return false
}

// point is an attach point of a list, and how many lines it stands after the
// list's start.
type point struct {
	text string
	line int
}

// splitHead splits what stands before an action: attach points between commas,
// and a condition between slashes.
func splitHead(head string) (points []point) {
	var text strings.Builder
	quoted, line, at := false, 0, 0
	end := func() {
		if s := strings.TrimSpace(text.String()); s != "" {
			points = append(points, point{s, at})
		}
		text.Reset()
	}
	for i := 0; i < len(head); i++ {
		c := head[i]
		switch {
		case c == '"':
			quoted = !quoted
		case c == '\n':
			line++
		case c == ',' && !quoted:
			end()
			continue
		case c == '/' && !quoted && startsCondition(head, i):
			end()
			return points
		}
		if text.Len() == 0 {
			if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
				continue
			}
			at = line
		}
		text.WriteByte(c)
	}
	end()
	return points
}

// startsCondition tells the slash of a condition from that of a path: a space or
// the start of the line stands before it, a colon before a path.
func startsCondition(head string, i int) bool {
	return i > 0 && strings.IndexByte(" \t\r\n", head[i-1]) >= 0
}

// scanner finds the blocks of a bpftrace script.
type scanner struct {
	text string
	line int // of the start of text
}

// block returns what stands before the next block in braces, without comments and
// directives, and the line where that starts; the block is passed over.
func (s *scanner) block() (head string, line int, ok bool) {
	var b strings.Builder
	for s.text != "" {
		if !inWord(b.String()) && s.skipComment() || b.Len() == 0 && s.skipDirective() {
			continue
		}
		c := s.text[0]
		switch {
		case c == '{':
			s.skipBlock()
			return b.String(), line, true
		case c == '"':
			if b.Len() == 0 {
				line = s.line
			}
			b.WriteString(s.take(s.stringLen()))
			continue
		case c == ';': // of a declaration without a block
			b.Reset()
			s.take(1)
			continue
		case b.Len() == 0 && strings.IndexByte(" \t\r\n", c) >= 0:
			s.take(1)
			continue
		case b.Len() == 0:
			line = s.line
		}
		b.WriteString(s.take(1))
	}
	return "", 0, false
}

// inWord reports whether head ends in a word, in which a path may have what starts
// a comment elsewhere: /usr/lib/*/libc.so.6.
func inWord(head string) bool {
	return head != "" && strings.IndexByte(" \t\r\n,", head[len(head)-1]) < 0
}

// take removes n bytes from the text and returns them.
func (s *scanner) take(n int) string {
	n = min(n, len(s.text))
	taken := s.text[:n]
	s.line += strings.Count(taken, "\n")
	s.text = s.text[n:]
	return taken
}

func (s *scanner) skipComment() bool {
	switch {
	case strings.HasPrefix(s.text, "//"):
		s.takeTo("\n", 0)
	case strings.HasPrefix(s.text, "/*"):
		s.takeTo("*/", len("*/"))
	default:
		return false
	}
	return true
}

// skipDirective passes over #include, #define, and the #! of the first line.
func (s *scanner) skipDirective() bool {
	if !strings.HasPrefix(s.text, "#") {
		return false
	}
	s.takeTo("\n", 0)
	return true
}

// takeTo removes all up to end, and more bytes after its start.
func (s *scanner) takeTo(end string, more int) {
	i := strings.Index(s.text, end)
	if i < 0 {
		i = len(s.text)
	}
	s.take(i + more)
}

// stringLen returns the length of the string that the text starts with.
func (s *scanner) stringLen() int {
	for i := 1; i < len(s.text); i++ {
		switch s.text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s.text)
}

// skipBlock passes over a block with the blocks in it.
func (s *scanner) skipBlock() {
	depth := 0
	for s.text != "" {
		if s.skipComment() {
			continue
		}
		switch s.text[0] {
		case '"':
			s.take(s.stringLen())
			continue
		case '{':
			depth++
		case '}':
			depth--
		}
		if s.take(1); depth == 0 {
			return
		}
	}
}
