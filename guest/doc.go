// Package guest is a machine that runs programs: CPUs of any supported ISA that
// share one memory, on the Unicorn engine. CPUs take turns on the caller's
// thread, in an order that only the seed decides; each runs until something
// happens that the host has to see. What the engine runs wrongly is stopped
// before it executes.
//
// A Machine and all that belongs to it is used by one goroutine at a time.
//
// All of it needs the build tag unicorn, for which there has to be the engine
// and a C compiler; GOFLAGS=-tags=unicorn go doc ./guest lists it. Without the
// tag the package is empty.
package guest
