package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxLine is the length of the longest line that is read.
const maxLine = 64 << 10

var (
	errLongLine = fmt.Errorf("line longer than %d bytes", maxLine)
	errNoBytes  = errors.New("no bytes given")
)

// lines decodes one instruction from every line of in.
func (d *decoding) lines(in io.Reader, w *bufio.Writer) error {
	var code []byte
	return eachLine(in, w, func(number int, line []byte, err error) error {
		var at uint64
		if err == nil {
			at, code, err = parseLine(code[:0], line)
		}
		if err != nil {
			return d.failure(at, fmt.Errorf("%w (line %d)", err, number))
		}
		return d.instruction(at, code)
	})
}

// eachLine calls visit for every line of in, with its number, or with
// errLongLine for one that is too long. Before it waits for more input it
// flushes w: whoever writes the lines may wait for the results.
func eachLine(in io.Reader, w *bufio.Writer, visit func(number int, line []byte, err error) error) error {
	r := bufio.NewReaderSize(in, maxLine)
	for number := 1; ; number++ {
		if r.Buffered() == 0 {
			w.Flush()
		}
		line, err := readLine(r)
		if err == io.EOF {
			return nil
		}
		if err != nil && err != errLongLine {
			return fmt.Errorf("standard input: %w (line %d)", withoutPath(err), number)
		}
		if err := visit(number, line, err); err != nil {
			return err
		}
	}
}

// readLine returns the next line, valid until the next call; errLongLine, once
// it has skipped it, for a line that does not fit into r's buffer; io.EOF
// after the last line.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		for err == bufio.ErrBufferFull {
			_, err = r.ReadSlice('\n')
		}
		if err == nil || err == io.EOF {
			err = errLongLine
		}
		return nil, err
	}
	if err == io.EOF && len(line) > 0 {
		err = nil
	}
	return line, err
}

// parseLine reads HEX or ADDR HEX and appends the bytes to dst.
func parseLine(dst, line []byte) (addr uint64, code []byte, err error) {
	line = bytes.TrimSpace(line)
	if i := bytes.IndexAny(line, " \t"); i >= 0 {
		if addr, err = parseHexAddr(line[:i]); err != nil {
			return 0, dst, err
		}
		line = bytes.TrimLeft(line[i:], " \t")
	}
	if len(line) == 0 {
		return addr, dst, errNoBytes
	}
	code, err = appendHex(dst, line)
	return addr, code, err
}

// prefix is what hexadecimal numbers may start with.
var prefix = []byte("0x")

// parseHexAddr reads a hexadecimal address, with or without 0x.
func parseHexAddr(s []byte) (uint64, error) {
	addr, err := strconv.ParseUint(string(bytes.TrimPrefix(s, prefix)), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not an address", s)
	}
	return addr, nil
}

// appendHex appends the bytes that s spells, with or without 0x before them, to
// dst.
func appendHex(dst, s []byte) ([]byte, error) {
	code, err := hex.AppendDecode(dst, bytes.TrimPrefix(s, prefix))
	if err == hex.ErrLength {
		return dst, fmt.Errorf("%.40q has an odd number of hex digits", s)
	}
	if err != nil {
		return dst, fmt.Errorf("%.40q is not hexadecimal", s)
	}
	return code, nil
}

// parseHexArgs returns the bytes that arguments spell, in memory order. Spaces
// and commas may divide them, as in "90 90" and 0x90,0x90, and \x90\x90 means
// the same.
func parseHexArgs(args []string) (code []byte, err error) {
	for i, arg := range args {
		arg = strings.ReplaceAll(arg, `\x`, " ")
		words := strings.FieldsFunc(arg, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == ',' })
		if len(words) == 0 {
			return nil, fmt.Errorf("%w (argument %d)", errNoBytes, i+1)
		}
		for _, word := range words {
			before := len(code)
			code, err = appendHex(code, []byte(word))
			if err == nil && len(code) == before {
				err = errNoBytes
			}
			if err != nil {
				return nil, fmt.Errorf("%w (argument %d)", err, i+1)
			}
		}
	}
	return code, nil
}
