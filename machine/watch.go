package machine

// WatchKind is a set of kinds of access to data.
type WatchKind uint8

// The kinds.
const (
	WatchRead WatchKind = 1 << iota
	WatchWrite
	WatchAccess = WatchRead | WatchWrite
)

var watchNames = [...]string{"none", "read", "write", "access"}

// String returns the kind in a word.
func (k WatchKind) String() string {
	if int(k) < len(watchNames) {
		return watchNames[k]
	}
	return "invalid"
}

// Watch is a range of data, and which accesses to it are watched.
type Watch struct {
	Addr uint64
	Len  int // bytes
	Kind WatchKind
}

// Holds reports whether an access of size bytes at addr is one of the watched
// bytes'.
func (w Watch) Holds(addr uint64, size int) bool {
	return addr-w.Addr < uint64(w.Len) || w.Addr-addr < uint64(size)
}

// WatchUnit is what the debug facility of an ISA's CPUs can do.
type WatchUnit struct {
	Slots int // watches of a CPU at a time
	// After says that an access is reported when it has been made; else before.
	After bool
}

// Watched is an access to watched data.
type Watched struct {
	Index int // in the list that is watched
	Kind  WatchKind
	Addr  uint64 // of the access
	Size  int    // of the access, in bytes
	// Old and New are the watched data before and after the instruction, as a
	// number; 0 where they are longer than 8 bytes.
	Old, New uint64
}
