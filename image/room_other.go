//go:build !linux

package image

import "unsafe"

func adviseHuge(unsafe.Pointer, uintptr) {}
