// Calls through the procedure linkage table of a shared object.
#include "isa.h"

	.text
	.balign 16
FUNC caller
#if defined(__x86_64__)
	call first@plt
	call second@plt
#else
	bl first
	bl second
#endif
	RET
END caller

	.section .note.GNU-stack, "", %progbits
