// A second file with a local function of the same name.
#include "isa.h"

	.text
	.balign 16
FUNC last, local
	nop
	RET
END last

	.section .note.GNU-stack, "", %progbits
