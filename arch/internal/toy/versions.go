package toy

import "xol/classify"

// known are the versions of Linux of which it is known how they answer: none.
var known classify.Known

// Profiles returns the names of the ISA's profiles.
func (ISA) Profiles() []string { return known.Names() }
