package events

import (
	"math"
	"strconv"
	"strings"
)

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// digits returns the base that the kernel takes s in, and the digits: 0x starts
// a hexadecimal number, 0 an octal one.
func digits(s string) (base int, rest string) {
	switch {
	case len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x' && isHex(s[2]):
		return 16, s[2:]
	case len(s) > 0 && s[0] == '0':
		return 8, s
	}
	return 10, s
}

// plainUint parses an unsigned number without sign.
func plainUint(s string, bits int) (uint64, bool) {
	base, rest := digits(s)
	v, err := strconv.ParseUint(rest, base, bits)
	return v, err == nil
}

// parseUint parses all of s as the kernel's kstrtoul does: in any base, with a
// plus sign or none.
func parseUint(s string, bits int) (uint64, bool) {
	return plainUint(strings.TrimPrefix(s, "+"), bits)
}

// parseDecimal parses s as kstrtoul with base 10 does.
func parseDecimal(s string) (uint64, bool) {
	v, err := strconv.ParseUint(strings.TrimPrefix(s, "+"), 10, 64)
	return v, err == nil
}

// parseInt parses all of s as the kernel's kstrtol does.
func parseInt(s string) (int64, bool) {
	if abs, ok := strings.CutPrefix(s, "-"); ok {
		v, ok := plainUint(abs, 64)
		return -int64(v), ok && v <= -math.MinInt64
	}
	v, ok := parseUint(s, 63)
	return int64(v), ok
}

// prefixUint parses the number that s starts with, as the kernel's
// simple_strtoul does; rest is s where there is none.
func prefixUint(s string) (v uint64, rest string) {
	base, tail := digits(s)
	n := 0
	for n < len(tail) && isHex(tail[n]) {
		if _, err := strconv.ParseUint(tail[n:n+1], base, 64); err != nil {
			break
		}
		n++
	}
	v, err := strconv.ParseUint(tail[:n], base, 64)
	if err != nil && n > 0 {
		v = math.MaxUint64
	}
	if n == 0 {
		return 0, s
	}
	return v, tail[n:]
}
