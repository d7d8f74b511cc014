#!/bin/sh
# Assembles and links the files that the tables (*.tsv) speak of from the
# sources beside it, with GNU binutils for each architecture.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# build OUTPUT TOOLS ASFLAGS LDFLAGS SOURCE
build() {
	"$2-as" $3 -o "$tmp/$1.o" "$5"
	"$2-ld" $4 -z noseparate-code -z max-page-size=4096 --build-id=none -o "$1" "$tmp/$1.o"
}

# Programs start inside their first function. -n: NOPs of one byte.
tools=x86_64-linux-gnu
build program.amd64 $tools -n "-Ttext=0x401000 -e 0x401001" program.amd64.s
build pie.amd64 $tools -n "-pie --no-dynamic-linker -Ttext=0x1000 -e start" pie.amd64.s
build far.amd64 $tools -n "-Ttext=0x7f0000000000 -e plain" far.amd64.s
build kernel.amd64 $tools -n "-Ttext=0xffffffff81000000 -e start_kernel" kernel.amd64.s
build damaged.amd64 $tools -n "-e plain" damaged.amd64.s
build broken.amd64 $tools -n "-Ttext=0x401000 -e start" broken.amd64.s
build tables.amd64 $tools -n "-Ttext=0xffffffff81000000 -e start_kernel" tables.amd64.s
$tools-strip -o stripped.amd64 pie.amd64

tools=aarch64-linux-gnu
build program.arm64 $tools "" "-e plain" program.arm64.s
build kernel.arm64 $tools "" "-Ttext=0xffff800080000000 -e start_kernel" kernel.arm64.s

for isa in ppc64 ppc64le; do
	tools=power${isa#p}-linux-gnu
	build program.$isa $tools "" "-Ttext=0x10000000 -e 0x10000004" program.ppc64.s
	build kernel.$isa $tools "" "-Ttext=0xc000000000000000 -e start_kernel" kernel.ppc64.s
	$tools-as -o module.$isa module.ppc64.s
done

chmod 644 ./*.amd64 ./*.arm64 ./*.ppc64 ./*.ppc64le
