package isa

import "testing"

// The bytes are those of functions of running kernels: of 5.10 on two CPUs, 6.1 and 6.12
// for amd64, and of 6.12 for arm64.
func TestFtraceSite(t *testing.T) {
	for _, tc := range []struct {
		name string
		isa  *Record
		code string
		off  uint64
		ok   bool
	}{
		{"a NOP", &amd64, "\x0f\x1f\x44\x00\x00\x55\x48\x89\xe5", 0, true},
		{"the NOP of some AMD CPUs, up to 5.12", &amd64, "\x66\x66\x66\x66\x90\x55", 0, true},
		{"a call", &amd64, "\xe8\x10\x20\x30\x40\x55", 0, true},
		{"after a landing pad", &amd64, "\xf3\x0f\x1e\xfa\x0f\x1f\x44\x00\x00\x55", 4, true},
		{"a landing pad alone", &amd64, "\xf3\x0f\x1e\xfa\x55\x48\x89\xe5", 4, false},
		{"another NOP", &amd64, "\x0f\x1f\x40\x00\x55\x90\x90\x90", 0, false},
		{"a function of one byte", &amd64, "\xc3", 0, false},
		{"arm64, a NOP", &arm64, "\xe9\x03\x1e\xaa\x1f\x20\x03\xd5", 4, true},
		{"arm64, a call", &arm64, "\xe9\x03\x1e\xaa\x10\x00\x00\x94", 4, true},
		{"arm64, after bti", &arm64, "\x5f\x24\x03\xd5\xe9\x03\x1e\xaa\x1f\x20\x03\xd5", 8, true},
		{"arm64, none", &arm64, "\x3f\x23\x03\xd5\xfd\x7b\xbf\xa9", 4, false},
		{"arm64, cut off", &arm64, "\xe9\x03\x1e\xaa", 4, false},
	} {
		off, ok := tc.isa.Kernel.FtraceSite([]byte(tc.code), false)
		if ok != tc.ok || ok && off != tc.off {
			t.Errorf("%s: %d, %v, want %d, %v", tc.name, off, ok, tc.off, tc.ok)
		}
	}
	if ppc64.Kernel.FtraceSite != nil {
		t.Error("on ppc64 a site is not at the start of its function")
	}
}

// Kernels write the NOP that is best for the CPU at jump labels.
func TestJumpLabelSize(t *testing.T) {
	for code, want := range map[string]uint64{
		"\xeb\x10": 2, "\x66\x90": 2, "\xe9\x10": 5, "\x0f\x1f": 5,
		"\x66\x66": 5, // the start of four prefixes and a NOP, up to 5.12
	} {
		if got := amd64.Kernel.JumpLabelSize(code[0], code[1]); got != want {
			t.Errorf("%x: %d, want %d", code, got, want)
		}
	}
}
