//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package process

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hostISA is the ISA of this machine, as package arch calls it.
const hostISA = runtime.GOARCH

// interrupts has a signal that this process does nothing with end system calls that wait,
// also when it comes to a thread in one. It returns false where that is not to be had.
func interrupts(signal int) bool {
	var a action
	if !sigaction(signal, nil, &a) || a.handler <= ignore {
		return false // there is no handler of Go's
	}
	if a.flags&restart == 0 {
		return true
	}
	a.flags &^= restart
	return sigaction(signal, &a, nil)
}

func sigaction(signal int, set, old *action) bool {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(signal),
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), unsafe.Sizeof(set.mask), 0, 0)
	return errno == 0
}
