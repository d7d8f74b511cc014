#!/bin/sh
# Builds the files beside it from switch.c and idioms.s with GCC, Clang and
# binutils, and writes down the jump tables as the compilers' assembly has them:
# lines of file, address of the table, bytes of an entry and targets.
set -eu
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# build NAME LINK-OPTION COMPILER OPTION...
build() {
    name=$1 link=$2
    shift 2
    "$@" -S -o "$out/$name.s" switch.c
    # Labels of the compiler's own become symbols, whose addresses nm tells.
    sed -i 's/\.L\([A-Za-z0-9_]*\)/Lk\1/g' "$out/$name.s"
    "$@" -c -o "$out/effect.o" effect.c
    "$1" -c -o "$out/$name.o" "$out/$name.s"
    gcc -nostdlib "$link" -Wl,-e,dense,-z,noseparate-code,--build-id=none \
        -o "$out/$name" "$out/$name.o" "$out/effect.o"
    nm "$out/$name" >"$out/$name.nm"
    awk -v name="$name" '
        FNR == NR { addr[$3] = $1; next }
        function finish() {
            if (n) print name "\t" addr[label] "\t" width "\t" list
            n = 0
        }
        /^[A-Za-z_.0-9]+:/ { finish(); label = $1; sub(/:.*/, "", label); next }
        ($1 == ".long" || $1 == ".quad") && $2 ~ /^Lk/ {
            split($2, part, "-")
            if (part[1] in addr && (part[2] == "" || part[2] == label)) {
                width = $1 == ".quad" ? 8 : 4
                list = n++ ? list " " addr[part[1]] : addr[part[1]]
                next
            }
        }
        { finish() }
        END { finish() }
    ' "$out/$name.nm" "$out/$name.s" >>"$out/tables"
    objcopy -S -w -K dense -K shifted -K characters -K masked -K unbounded -K bytes -K crowded -K nested \
        -K threaded -K tail -K tailtable -K effect -K other -R .comment -R .note* "$out/$name"
    gzip -9n <"$out/$name" >"$name.gz"
}

for o in 0 1 2 3 s; do
    build "gcc-O$o" -no-pie gcc "-O$o" -fno-pie -fcf-protection=none
    build "gcc-pie-O$o" -pie gcc "-O$o" -fPIE -fcf-protection
done
build gcc-native-O2 -pie gcc -O2 -fPIE -march=x86-64-v3 -fno-omit-frame-pointer
for o in 0 1 2 s; do
    build "clang-O$o" -no-pie clang "-O$o" -fno-pie
    build "clang-pie-O$o" -pie clang "-O$o" -fPIE -fcf-protection
done
sort "$out/tables" | gzip -9n >tables.tsv.gz

gcc -c -o "$out/idioms.o" idioms.s
gcc -nostdlib -no-pie -Wl,-e,absolute,-z,noseparate-code,--build-id=none -o "$out/idioms" "$out/idioms.o"
objcopy -R .comment -R .note* "$out/idioms"
gzip -9n <"$out/idioms" >idioms.gz
