#!/bin/sh
# Builds the ELF files beside this script, and tables.tsv: the jump tables as
# the compilers wrote them into their assembler text, with the addresses that
# the linker gave to their labels. It needs aarch64-linux-gnu-gcc and clang.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# tables prints, for the assembler text of one file, a line for each jump table:
# its label, the bytes of an entry, and the labels of its targets.
tables() {
	awk '
	function flush() {
		if (n > 0) print label, width, targets
		n = 0; targets = ""
	}
	/^[._A-Za-z0-9$]+:/ { flush(); label = $1; sub(/:.*/, "", label); next }
	$1 ~ /^\.(byte|hword|2byte|word|4byte|xword|8byte)$/ && $2 ~ /^\(?\.L/ {
		target = $2; gsub(/^\(/, "", target); sub(/[-) ].*/, "", target); sub(/-.*/, "", target)
		width = $1 == ".byte" ? 1 : $1 ~ /hword|2byte/ ? 2 : $1 ~ /xword|8byte/ ? 8 : 4
		targets = n++ ? targets "," target : target
		next
	}
	{ flush() }
	END { flush() }' "$1"
}

# variant NAME COMPILER... builds one file.
variant() {
	name=$1
	shift
	"$@" -fno-asynchronous-unwind-tables -ffreestanding -S -o "$work/$name.s" switch.c
	aarch64-linux-gnu-as -L -o "$work/$name.o" "$work/$name.s"
	aarch64-linux-gnu-ld --no-warn-rwx-segments -static -e plain -z norelro -z max-page-size=4096 -o "$work/$name" "$work/$name.o" "$work/stubs.o"
	aarch64-linux-gnu-nm "$work/$name" >"$work/$name.nm"
	tables "$work/$name.s" | awk -v file="$name.elf" '
	FNR == NR { address[$3] = $1; next }
	$1 in address {
		k = split($3, labels, ",")
		line = file "\t0x" address[$1] "\t" $2 "\t"
		for (i = 1; i <= k; i++) line = line (i > 1 ? "," : "") "0x" address[labels[i]]
		print line
	}' "$work/$name.nm" - | sed 's/0x0*/0x/g' >>tables.tsv
	aarch64-linux-gnu-objcopy --strip-debug --discard-all --wildcard -N '$*' -R .comment -R '.note*' "$work/$name" "$name.elf"
	chmod 644 "$name.elf"
	gzip -9nf "$name.elf"
}

aarch64-linux-gnu-as -o "$work/cases.o" cases.s
aarch64-linux-gnu-ld -static -e compare_hi -o cases.elf "$work/cases.o"
gzip -9nf cases.elf

gcc="aarch64-linux-gnu-gcc --param case-values-threshold=4 -fno-stack-protector"
clang="clang --target=aarch64-linux-gnu -fno-addrsig -fno-stack-protector"

$gcc -O1 -c -o "$work/stubs.o" stubs.c
printf '# file, address of the table, bytes of an entry, targets\n' >tables.tsv
variant gcc-O0 $gcc -O0
variant gcc-O2 $gcc -O2
variant gcc-Os $gcc -Os
variant gcc-O2-bti $gcc -O2 -mbranch-protection=standard
variant gcc-O3-pic $gcc -O3 -fPIC
variant clang-O0 $clang -O0
variant clang-O2 $clang -O2
variant clang-Os $clang -Os
variant clang-O2-bti $clang -O2 -mbranch-protection=standard
variant clang-O2-pic $clang -O2 -fPIC
