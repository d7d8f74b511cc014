//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package process

import (
	"encoding/binary"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What threads are traced with. The kernel detaches them where the tracer ends.
const traceOptions = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK |
	unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACEEXEC

// syscallStop is the signal of a stop at a system call (PTRACE_O_TRACESYSGOOD).
const syscallStop = unix.SIGTRAP | 0x80

// ptrace makes a request. None of them waits, so the scheduler need not know.
func ptrace(request, tid int, addr, data uintptr) error {
	if _, _, errno := syscall.RawSyscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), addr, data, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func ptracePointer(request, tid int, addr uintptr, data unsafe.Pointer) error {
	if _, _, errno := syscall.RawSyscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), addr, uintptr(data), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

const ntPRStatus = 1

// getRegs fills words and returns how many there are.
func getRegs(tid int, words []uint64) (int, error) {
	iov := unix.Iovec{Base: (*byte)(unsafe.Pointer(&words[0]))}
	iov.SetLen(8 * len(words))
	err := ptracePointer(unix.PTRACE_GETREGSET, tid, ntPRStatus, unsafe.Pointer(&iov))
	return int(iov.Len) / 8, err
}

func setRegs(tid int, words []uint64) error {
	iov := unix.Iovec{Base: (*byte)(unsafe.Pointer(&words[0]))}
	iov.SetLen(8 * len(words))
	return ptracePointer(unix.PTRACE_SETREGSET, tid, ntPRStatus, unsafe.Pointer(&iov))
}

func getInfo(tid int, info *[infoSize]byte) error {
	return ptracePointer(unix.PTRACE_GETSIGINFO, tid, 0, unsafe.Pointer(info))
}

func setInfo(tid int, info *[infoSize]byte) error {
	return ptracePointer(unix.PTRACE_SETSIGINFO, tid, 0, unsafe.Pointer(info))
}

// raised reports whether an instruction of a thread has raised a signal that waits to be
// delivered.
func raised(tid int) bool {
	const most = 8
	args := struct {
		from  uint64
		flags uint32
		count int32
	}{count: most}
	var infos [most][infoSize]byte
	n, _, errno := syscall.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_PEEKSIGINFO, uintptr(tid),
		uintptr(unsafe.Pointer(&args)), uintptr(unsafe.Pointer(&infos)), 0, 0)
	if errno != 0 {
		return false
	}
	for i := range infos[:n] {
		s := Signal{Number: syscall.Signal(binary.NativeEndian.Uint32(infos[i][:])), Info: infos[i]}
		if s.Fault() {
			return true
		}
	}
	return false
}

// signalMask is a set of signals: bit 0 is signal 1.
type signalMask uint64

const allSignals = ^signalMask(0)

func maskOf(signals ...syscall.Signal) (m signalMask) {
	for _, s := range signals {
		m |= 1 << (s - 1)
	}
	return m
}

func (m signalMask) has(s syscall.Signal) bool { return m&maskOf(s) != 0 }

func getMask(tid int) (m signalMask, err error) {
	err = ptracePointer(unix.PTRACE_GETSIGMASK, tid, unsafe.Sizeof(m), unsafe.Pointer(&m))
	return m, err
}

func setMask(tid int, m signalMask) error {
	return ptracePointer(unix.PTRACE_SETSIGMASK, tid, unsafe.Sizeof(m), unsafe.Pointer(&m))
}

func eventMessage(tid int) (msg uint64, err error) {
	err = ptracePointer(unix.PTRACE_GETEVENTMSG, tid, 0, unsafe.Pointer(&msg))
	return msg, err
}

// syscallInfo is the start of struct ptrace_syscall_info.
type syscallInfo struct {
	op   uint8
	_    [7]byte
	_    [16]byte  // program counter, stack pointer
	data [7]uint64 // at the entry: number and arguments; at the exit: result, whether it is an error
	_    [8]byte
}

const (
	syscallEntry = 1
	syscallExit  = 2
)

func getSyscallInfo(tid int) (info syscallInfo, err error) {
	err = ptracePointer(unix.PTRACE_GET_SYSCALL_INFO, tid, unsafe.Sizeof(info), unsafe.Pointer(&info))
	return info, err
}

// criticalSection returns where the thread has the pointer to its restartable sequence:
// the field rseq_cs of struct rseq; 0 where it has none.
func criticalSection(tid int) uint64 {
	const fieldOfCS = 8
	var config [24]byte
	if ptracePointer(unix.PTRACE_GET_RSEQ_CONFIGURATION, tid, unsafe.Sizeof(config), unsafe.Pointer(&config)) != nil {
		return 0
	}
	if at := binary.NativeEndian.Uint64(config[:]); at != 0 {
		return at + fieldOfCS
	}
	return 0
}

// wait waits for a child or traced thread of this thread: any, or that of the id.
func wait(id int, options int) (tid int, status unix.WaitStatus, err error) {
	var ws int32
	call := syscall.Syscall6
	if options&unix.WNOHANG != 0 {
		call = syscall.RawSyscall6
	}
	r, _, errno := call(unix.SYS_WAIT4, uintptr(id), uintptr(unsafe.Pointer(&ws)), uintptr(options|unix.WALL|unix.WNOTHREAD), 0, 0, 0)
	if errno != 0 {
		return 0, 0, errno
	}
	return int(r), unix.WaitStatus(ws), nil
}

func tgkill(pid, tid int, signal syscall.Signal) error {
	if _, _, errno := syscall.RawSyscall(unix.SYS_TGKILL, uintptr(pid), uintptr(tid), uintptr(signal)); errno != 0 {
		return errno
	}
	return nil
}
