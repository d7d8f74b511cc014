#!/bin/sh
# Assembles and links the two builds of a program for each architecture with GNU
# binutils, and the same without names.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# build OUTPUT TOOLS SOURCE ASFLAGS TWIN...
build() {
	output=$1 tools=$2 source=$3 asflags=$4
	shift 4
	objects=
	for part in "$source" "$@"; do
		"$tools-as" $asflags -o "$tmp/$part.o" "$part.s"
		objects="$objects $tmp/$part.o"
	done
	"$tools-ld" -e main -z noseparate-code --build-id=none -o "$output.elf" $objects
	"$tools-strip" -o "$output-stripped.elf" "$output.elf"
}

for isa in "amd64 x86_64-linux-gnu amd64 " "arm64 aarch64-linux-gnu arm64 " \
	"ppc64le powerpc64le-linux-gnu ppc64 -mregnames -mpower9" "ppc64 powerpc64-linux-gnu ppc64 -mregnames -mpower9"; do
	read -r name tools source flags <<END
$isa
END
	build "$name-before" "$tools" "$source" "$flags" twin1 twin3
	build "$name-after" "$tools" "$source" "$flags --defsym AFTER=1" twin1 twin2 twin3
done
chmod 644 ./*.elf
