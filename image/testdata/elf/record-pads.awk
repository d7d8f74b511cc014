# Appends to the assembler text that a compiler writes a section .landings with
# the call sites that have a landing pad, as testdata/elf/landings.S has it.
# The lines of a call site are its start and its landing pad, counted from the
# function's start, and in between its length.
{ print }
/^[ \t]*\.(uleb128|byte|4byte|long)[ \t]/ {
	if (split($2, part, "-") == 2 && part[1] ~ /^\.L/) {
		if (step == 2 && part[2] == base) {
			sites[++n] = part[1] ", " site
			step = 0
		} else if (step == 1 && part[2] == site)
			step = 2
		else {
			site = part[1]; base = part[2]
			step = 1
		}
	} else
		step = 0
	next
}
{ step = 0 }
END {
	print "\t.section .landings, \"\", %progbits"
	unwind = 9 # place.LandUnwind
	for (i = 1; i <= n; i++)
		print "\t.quad " unwind ", " sites[i]
}
