package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// maxLine is the length of the longest line that is read.
const maxLine = 64 << 10

var (
	errLongLine = fmt.Errorf("line longer than %d bytes", maxLine)
	errNoBytes  = errors.New("no bytes given")
)

// lines decodes one instruction from every line of in. Before it waits for
// more input it flushes w: whoever writes the lines may wait for the results.
func (d *decoding) lines(in io.Reader, w *bufio.Writer) error {
	r := bufio.NewReaderSize(in, maxLine)
	var code []byte
	for number := 1; ; number++ {
		if r.Buffered() == 0 {
			w.Flush()
		}
		line, err := readLine(r)
		if err == io.EOF {
			return nil
		}
		var at uint64
		if err == nil {
			at, code, err = parseLine(code[:0], line)
		} else if err != errLongLine {
			return fmt.Errorf("standard input: %w (line %d)", withoutPath(err), number)
		}
		if err != nil {
			err = d.failure(at, fmt.Errorf("%w (line %d)", err, number))
		} else {
			err = d.instruction(at, code)
		}
		if err != nil {
			return err
		}
	}
}

// readLine returns the next line, valid until the next call; errLongLine, once
// it has skipped it, for a line that does not fit into r's buffer; io.EOF
// behind the last line.
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

// parseHexAddr reads a hexadecimal address, with or without 0x.
func parseHexAddr(s []byte) (uint64, error) {
	digits := bytes.TrimPrefix(s, []byte("0x"))
	addr, err := strconv.ParseUint(string(digits), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not an address", s)
	}
	return addr, nil
}

// appendHex appends the bytes that s spells to dst.
func appendHex(dst, s []byte) ([]byte, error) {
	code, err := hex.AppendDecode(dst, s)
	if err == hex.ErrLength {
		return dst, fmt.Errorf("%.40q has an odd number of hex digits", s)
	}
	if err != nil {
		return dst, fmt.Errorf("%.40q is not hexadecimal", s)
	}
	return code, nil
}
