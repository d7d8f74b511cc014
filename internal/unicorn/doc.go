// Package unicorn is a thin binding of the Unicorn engine, version 2.1.1 or
// newer: engines with a virtual TLB that the caller fills, host memory, and
// runs that write registers, execute and read registers in one call.
//
// A program that is linked with it falls under the GPL, version 2.
//
// All of it needs the build tag unicorn. Without the tag the package is empty.
package unicorn
