//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package process

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// suspendFilter has the kernel not apply the seccomp filters of a stopped thread until
// resumeFilter. That takes CAP_SYS_ADMIN, and a tracer that has no filter itself. Without,
// the error is ErrFiltered, unless the thread has no filter but such as the tracer has too:
// those of a container, which allow what a tracer needs as long as they allow the tracer.
func (th *Thread) suspendFilter() error {
	if ptrace(unix.PTRACE_SETOPTIONS, th.tid, 0, traceOptions|unix.PTRACE_O_SUSPEND_SECCOMP) == nil {
		return nil
	}
	its, err := filtersOf(th.tid)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return th.process.fail(ErrGone, "")
	case err != nil:
		return th.process.fail(err, "")
	case its == seccomp{}:
		return nil
	}
	mine, err := filtersOf(os.Getpid())
	if err == nil && mine.mode == its.mode && mine.filters >= its.filters {
		return nil
	}
	return th.process.fail(ErrFiltered, "root, outside of containers, can suspend it")
}

// resumeFilter undoes suspendFilter. A thread that has ended meanwhile needs it no more.
func (th *Thread) resumeFilter() {
	ptrace(unix.PTRACE_SETOPTIONS, th.tid, 0, traceOptions)
}

// seccomp is how the system calls of a thread are filtered.
type seccomp struct {
	mode    int // 0 not at all, 1 strictly, 2 by filters
	filters int // how many there are; 0 where the kernel is older than 5.9 and does not tell
}

func filtersOf(tid int) (s seccomp, err error) {
	field, err := statusField(tid, "Seccomp")
	if err != nil || field == "" { // the kernel has none
		return s, err
	}
	if s.mode, err = strconv.Atoi(field); err != nil {
		return s, err
	}
	if field, err = statusField(tid, "Seccomp_filters"); err == nil && field != "" {
		s.filters, err = strconv.Atoi(field)
	}
	return s, err
}
