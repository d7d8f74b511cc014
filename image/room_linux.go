package image

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// adviseHuge asks the system for huge pages where any of size bytes from p on are.
// Memory is as good without them, only slower, so that errors do not matter.
func adviseHuge(p unsafe.Pointer, size uintptr) {
	const page = 2 << 20
	from := uintptr(p) &^ (page - 1)
	end := (uintptr(p) + size + page - 1) &^ (page - 1)
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, end-from, unix.MADV_HUGEPAGE)
}
