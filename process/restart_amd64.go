//go:build linux

package process

import "golang.org/x/sys/unix"

// startedAgain are those system calls; where they say EINTR, they have done nothing.
var startedAgain = map[uint64]bool{
	unix.SYS_EPOLL_WAIT: true, unix.SYS_EPOLL_PWAIT: true, unix.SYS_EPOLL_PWAIT2: true,
	unix.SYS_RT_SIGTIMEDWAIT: true,
	unix.SYS_SEMOP:           true, unix.SYS_SEMTIMEDOP: true,
	unix.SYS_IO_GETEVENTS: true, unix.SYS_IO_PGETEVENTS: true, unix.SYS_IO_URING_ENTER: true,
	// Those of sockets that have a timeout.
	unix.SYS_RECVFROM: true, unix.SYS_RECVMSG: true, unix.SYS_RECVMMSG: true, unix.SYS_SENDTO: true,
	unix.SYS_SENDMSG: true, unix.SYS_SENDMMSG: true, unix.SYS_ACCEPT: true, unix.SYS_ACCEPT4: true,
}
