#!/bin/sh
# Makes the files here: flat code of the callbacks, and the layouts of frames.
# Needs the cross compilers and qemu-user.
set -e
cd "$(dirname "$0")"
build() {
	"$1as" $2 -o "$4.o" "$3"
	"$1objcopy" -O binary -j .text "$4.o" "$4"
	rm "$4.o"
}
build x86_64-linux-gnu- "" callback-amd64.s callback-amd64.bin
build aarch64-linux-gnu- "" callback-arm64.s callback-arm64.bin
build powerpc64-linux-gnu- "-a64 -mpower8" callback-ppc64.s callback-ppc64.bin
build powerpc64le-linux-gnu- "-a64 -mpower8" callback-ppc64.s callback-ppc64le.bin

# The layouts of struct pt_regs, by the headers that came with the compilers.
layout() {
	"$1gcc" -static -o layout ptregs.c
	$2 ./layout > "$3"
	rm layout
}
layout x86_64-linux-gnu- "" ptregs-amd64.tsv
layout aarch64-linux-gnu- qemu-aarch64 ptregs-arm64.tsv
layout powerpc64-linux-gnu- qemu-ppc64 ptregs-ppc64.tsv
layout powerpc64le-linux-gnu- qemu-ppc64le ptregs-ppc64le.tsv
