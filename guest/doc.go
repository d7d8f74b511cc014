// Package guest is a machine that runs programs: CPUs of any supported ISA that
// share one memory, on the Unicorn engine. CPUs take turns on the caller's
// thread, in an order that only the seed decides; each runs until something
// happens that the host has to see. What the engine runs wrongly is stopped
// before it executes.
//
// Code that is written is executed by every CPU from its next instruction on,
// whoever writes it: a CPU, the host. Stores cost what they cost, but for those to
// pages from which code has been executed: the first one has the page's code
// forgotten, and one of an instruction in the same page is executed by itself, which
// takes some ten thousand times as long. Patches are seen by the CPUs' fetches
// only (see Machine.Patch).
//
// A Machine and all that belongs to it is used by one goroutine at a time.
//
// All of it needs the build tag unicorn, for which there has to be the engine
// and a C compiler; GOFLAGS=-tags=unicorn go doc ./guest lists it. Without the
// tag the package is empty.
package guest
