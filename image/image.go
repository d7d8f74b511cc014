// Package image reads ELF files: text, symbols, function extents, kernel
// tables and source lines, also of compressed kernels and modules. Files are
// read lazily.
package image
