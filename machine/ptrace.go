package machine

// Traced is how Linux shows the registers of a thread to the process that traces it
// (ptrace(2), PTRACE_GETREGSET of NT_PRSTATUS), and what a system call and a breakpoint
// look like there. Words are 8 bytes each, counted from 0.
type Traced struct {
	Words int // of the register set
	// Word is where a register is, by its index in the ISA's File; what the set does
	// not have, or the list no more, is elsewhere.
	Word []TracedWord
	// Restart is the word that says that the thread is in a system call, which the
	// kernel may restart, and NoRestart its value where there is none to restart.
	// Negative where the kernel has decided before the tracer sees the thread.
	Restart   int
	NoRestart uint64

	Syscall []byte // the instruction that calls the system
	Number  int    // word of the system call's number
	Args    [6]int // words of its arguments
	Result  int    // word of its result
	// Failed is the word that has FailedBit set where the result is an error number;
	// negative where a result of -4095 to -1 is the negative error number.
	Failed    int
	FailedBit uint64

	// Breakpoint is the instruction of a breakpoint in a program; what has its bits
	// where Mask has ones is one as well. After it has been executed, the program counter
	// is Past bytes after its address, and the code of the signal is Code.
	Breakpoint []byte
	Mask       []byte
	Past       uint64
	Code       int32
	// Alike is another instruction after which a thread stops in the same way; nil where
	// there is none.
	Alike []byte
}

// IsBreakpoint reports whether code starts with an instruction that is a breakpoint.
func (t *Traced) IsBreakpoint(code []byte) bool {
	if len(code) < len(t.Breakpoint) {
		return false
	}
	for i, m := range t.Mask {
		if (code[i]^t.Breakpoint[i])&m != 0 {
			return false
		}
	}
	return true
}

// TracedWord is a register in a set of words: the bits of Mask are its value. Where
// Mask is 0, the set does not have it.
type TracedWord struct {
	Word int
	Mask uint64
}

// Whole is a register that is all of a word.
func Whole(word int) TracedWord { return TracedWord{word, ^uint64(0)} }
