#!/bin/sh
# Assembles the callbacks into flat code. Needs the cross assemblers.
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
