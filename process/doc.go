// Package process runs and changes real programs: processes of Linux under ptrace(2), with
// their threads, memory, signals and children. A Tracer starts programs or attaches to
// running ones, and tells a Handler what happens in them. Threads can be stopped at any
// time, memory read and written, system calls made in the program's name. What the
// program does and sees is otherwise as without: signals keep their data, system calls
// that are interrupted go on, job control works.
//
// It is for Linux on amd64, arm64 and ppc64; elsewhere the package is empty but for its
// errors.
package process
