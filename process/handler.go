//go:build linux && (amd64 || arm64 || ppc64 || ppc64le)

package process

import (
	"encoding/binary"
	"os"
	"syscall"
)

// Handler is told what happens in the processes of a Tracer, on the tracer's thread, one
// event at a time. While it is, the thread that the event is about is stopped; the others
// run unless their process is stopped (Process.Stop). An error ends Tracer.Run.
type Handler interface {
	// Trap: a breakpoint instruction was executed; the program counter has been set to its
	// address. If the handler returns true, the thread goes on with the registers as
	// they are then. Else it was the program's own: the handler must have left
	// everything alone, and SIGTRAP is delivered as it would have been.
	Trap(th *Thread) (handled bool, err error)
	// Signal: s is about to be delivered to th. Registers may be changed.
	Signal(th *Thread, s *Signal) error
	// Started: the process executes another program (also the one of Tracer.Start). It is
	// held before its first instruction. Where the program is not for this machine, or has
	// 32 bits, it is not called: the process goes on untraced.
	Started(p *Process) error
	// Mapped: the set of mapped objects has changed, by dlopen or dlclose, or the
	// start-up of a program with libraries is complete but for the functions that they
	// start with. With Options.EachMapping it is also called during start-up, after
	// each mapping of a file that can be executed.
	Mapped(p *Process, th *Thread) error
	// Forked: parent has made a child, which is held until the handler returns. Where it
	// shares its parent's memory (Process.Shares), it is traced until it executes another
	// program or ends, and the thread that called vfork waits for it. Otherwise it has a
	// copy of the memory, with all that has been changed there, and it is let go after the
	// call unless Options.Follow is set. th is the thread that called the system, nil
	// where it is dead already.
	Forked(parent, child *Process, th *Thread) error
	// Exited: the process has ended. Its memory is gone.
	Exited(p *Process, status syscall.WaitStatus)
}

// Options are what a Tracer does besides. The zero value is ready to use.
type Options struct {
	// Follow has children traced as well.
	Follow bool
	// EachMapping has Handler.Mapped called during start-up for each mapping that can be
	// executed, before anything of it is. This costs two stops for each system call until
	// the program starts.
	EachMapping bool
}

// Command is a program to start.
type Command struct {
	Path string   // of the file
	Args []string // with the name of the program, as for execve
	Env  []string // nil: that of this process
	Dir  string   // empty: that of this process
	// Files are standard input, output, error, and further ones. nil: those three of this
	// process.
	Files []*os.File
}

// infoSize is the size of siginfo_t.
const infoSize = 128

// Signal is a signal on its way to a thread.
type Signal struct {
	Number syscall.Signal
	// Info is siginfo_t. What is changed there is delivered so.
	Info [infoSize]byte
	// Drop has it not delivered.
	Drop bool
}

// Code returns what sent the signal: si_code.
func (s *Signal) Code() int32 { return int32(binary.NativeEndian.Uint32(s.Info[8:])) }

// Fault reports whether the instruction at the program counter raised the signal, or that
// before it where it is a trap.
func (s *Signal) Fault() bool {
	switch s.Number {
	case syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGILL, syscall.SIGFPE, syscall.SIGTRAP, syscall.SIGSYS:
		return s.Code() > 0
	}
	return false
}

// Addr returns si_addr, which a Fault has: the address that could not be accessed, or that
// of the instruction.
func (s *Signal) Addr() uint64 { return binary.NativeEndian.Uint64(s.Info[16:]) }

// SetAddr changes it.
func (s *Signal) SetAddr(addr uint64) { binary.NativeEndian.PutUint64(s.Info[16:], addr) }
