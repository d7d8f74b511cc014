#!/bin/sh
# Assembles and links the fixtures from the sources beside it, with GNU
# binutils for each architecture.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# build OUTPUT TOOLS ASFLAGS LDFLAGS SOURCE...
build() {
	output=$1 tools=$2 asflags=$3 ldflags=$4
	shift 4
	objects=
	for source; do
		"$tools-as" $asflags --debug-prefix-map="$PWD=." -o "$tmp/$output-$source.o" "$source"
		objects="$objects $tmp/$output-$source.o"
	done
	"$tools-ld" $ldflags -z noseparate-code --build-id=none -o "$output" $objects
}

build amd64.elf x86_64-linux-gnu -g "-e main" amd64.s twin.s
build hazards.elf x86_64-linux-gnu "" "-e main" hazards.s
build kernel.elf x86_64-linux-gnu "" "-e start_kernel -Ttext=0xffffffff81000000" kernel.s
build sites.elf x86_64-linux-gnu "" "-e start_kernel -Ttext=0xffffffff81000000" sites.s
build areas.elf x86_64-linux-gnu "" "-e start_kernel -Ttext=0xffffffff81000000" areas.s
build entries.elf powerpc64le-linux-gnu "" "-e start_kernel -Ttext=0xc000000000000000" entries.s
build arm64.elf aarch64-linux-gnu "" "-e main" arm64.s
build ppc64le.elf powerpc64le-linux-gnu "-mpower10" "-e main" ppc64.s
build ppc64.elf powerpc64-linux-gnu "-mpower10" "-e main" ppc64.s
build markers-amd64.elf x86_64-linux-gnu "" "-e main" markers-amd64.s
build markers-moved.elf x86_64-linux-gnu "--defsym MOVED=0x10000" "-e main" markers-amd64.s
build markers-arm64.elf aarch64-linux-gnu "" "-e main" markers-arm64.s
build markers-ppc64.elf powerpc64-linux-gnu "-mregnames" "-e main" markers-ppc64.s
build markers-ppc64le.elf powerpc64le-linux-gnu "-mregnames" "-e main" markers-ppc64.s
x86_64-linux-gnu-as -o markers-object.o markers-amd64.s
x86_64-linux-gnu-strip -o stripped.elf amd64.elf
x86_64-linux-gnu-strip -o unnamed.elf kernel.elf
chmod 644 ./*.elf ./*.o
