package runtime

// ReturnProbe is a kretprobe: its handler runs when a function returns.
//
// The function returns to a trampoline. A call is found again by its task (see
// Runtime.SetTask) and by the stack pointer that it was made with, on whatever stack
// that is. A function that returns twice, or that pops its arguments, cannot have a
// return probe: see ReturnError. One that adds a little to its return address returns
// as far after the real one. One that puts another address there, or is left by a
// longjmp, goes where it says, and the Handler does not run: that call counts as going
// on until something else is seen to be at its place on the stack, and gives its room
// to a later call.
type ReturnProbe struct {
	// Symbol and Offset, or Addr, say which function: its entry.
	Symbol string
	Offset uint64
	Addr   uint64

	// Handler runs when the function has returned, before its caller goes on.
	Handler func(c *ReturnContext)
	// EntryHandler runs when the function is called. If it returns true, this
	// call is left alone.
	EntryHandler func(c *ReturnContext) (skip bool)
	// DataSize is the number of bytes that EntryHandler may keep for Handler,
	// for each call: 4096 at most.
	DataSize int
	// MaxActive is how many calls may be going on at a time; the others are
	// missed. It is max(10, 2 × CPUs) where it is 0 or less.
	MaxActive int
	// Disabled attaches the probe without arming it.
	Disabled bool
}

// returnProbe is a ReturnProbe that is attached.
type returnProbe struct {
	ReturnProbe
	entry    *probe
	function uint64 // the address that the probe names
	closed   bool
	free     []*instance
	made     int // instances that there are
	missed   uint64
	hits     uint64
}

// ReturnContext is what the handlers of a return probe are called with. It is
// valid during the call. The instruction pointer of a Handler is To.
type ReturnContext struct {
	*Context
	Function uint64 // its address, as the probe names it
	// Data is this call's own, from EntryHandler to Handler.
	Data []byte
	// To is the address that the function returns to.
	To uint64
}

// maxDataSize is the most that Linux keeps for a call, in bytes
// [include/linux/kprobes.h, KRETPROBE_MAX_DATA_SIZE].
const maxDataSize = 4096

// entryProbe returns the probe at the function's entry.
func (p ReturnProbe) entryProbe() Probe {
	return Probe{Symbol: p.Symbol, Offset: p.Offset, Addr: p.Addr, Disabled: p.Disabled}
}

func (p ReturnProbe) place() string { return p.entryProbe().place() }
