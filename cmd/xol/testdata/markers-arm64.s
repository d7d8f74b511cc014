# Static markers with every form of operand that compilers write on arm64.

	.include "marker.inc"

	.text
	.globl	main
	.type	main, %function
main:
	marker	server, start
	marker	server, request, "8@x0 -4@w1 2@w2 -1@x3 8@x30 8@sp", requests
	marker	server, stack, "8@[sp, 24] -4@[x29, -8] 8@[x0] 1@[x0, x1] 4@[x0, x1, lsl 2] -4@[x0, w1, sxtw 2]"
	marker	server, static, "8@[x0, #:lo12:counters] -4@-5 4@16 8@xzr"
	marker	server, float, "8f@d0 4f@s1 4f@[sp, 12]", requests
	marker	other, unclear, "8@[x0, x1, ror 3] 8@x31"
	ret
	.size	main, . - main
