// Package emulator runs code in Unicorn for package machine, on every ISA. What
// the engine runs wrongly, or not at all, is refused before it executes.
//
// All of it needs the build tag unicorn. Without the tag the package is empty.
package emulator
