#!/bin/sh
# Builds the fixtures from the sources beside it, with GNU tools for amd64.
set -eu
cc="x86_64-linux-gnu-gcc -O1 -nostdlib -Wl,-z,noseparate-code,--build-id=none,--hash-style=gnu -fcf-protection=none"
$cc -shared -fPIC -Wl,--version-script=lib.map,-soname=libfix.so.1 -s -o libfix.so.1 lib.c
$cc -gdwarf-4 -fdebug-prefix-map="$PWD=." -fPIE -pie -o prog prog.c libfix.so.1
