package main

import (
	"bytes"
	"testing"
	"time"
)

func TestProgressShowsOnlyLongWork(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := &progress{w: &out, what: "vmlinux", now: func() time.Time { return now }, start: now, total: 100}
	p.add(1)
	if out.Len() > 0 {
		t.Errorf("shown at once: %q", &out)
	}
	now = now.Add(2 * progressDelay)
	p.add(1)
	if !bytes.Contains(out.Bytes(), []byte("vmlinux")) {
		t.Errorf("not shown after two seconds: %q", &out)
	}
	p.finish()
}

func TestNoProgressWithoutTerminal(t *testing.T) {
	a := &app{out: new(bytes.Buffer), err: new(bytes.Buffer)}
	p := a.newProgress("x", 1)
	if p != nil {
		t.Fatal("progress goes to something that is no terminal")
	}
	p.add(1) // a nil progress takes everything
	p.finish()
}
