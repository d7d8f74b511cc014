# Static markers with every form of operand that compilers write on ppc64.

	.include "marker.inc"

	.text
	.globl	main
	.type	main, %function
main:
	marker	server, start
	marker	server, request, "8@3 -4@%r4 2@5 -1@r6", requests
	marker	server, stack, "8@16(31) -4@-8(1) 8@0(%r9) 1@9,10 4@0,9"
	marker	server, static, "-4@i-5 4@i16 8@i0x10"
	marker	server, float, "8f@%f1 4f@%f2 4f@12(1)", requests
	marker	other, unclear, "8@32 8@[9]"
	blr
	.size	main, . - main
