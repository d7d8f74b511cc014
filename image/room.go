package image

import "unsafe"

// largeRoom is the number of bytes from which on room asks for huge pages.
const largeRoom = 1 << 20

// room returns n zero values, as make does. Much of it is backed by huge pages where the
// system gives them for the asking: the tables of a kernel are written once from their
// start to their end, and a fault for each small page takes longer than what is written
// there.
func room[T any](n int) []T {
	s := make([]T, n)
	var one T
	if size := uintptr(n) * unsafe.Sizeof(one); size >= largeRoom {
		adviseHuge(unsafe.Pointer(unsafe.SliceData(s)), size)
	}
	return s
}
