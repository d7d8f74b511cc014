// Functions of all sorts, to see where each is taken to start and to end. What
// is expected stands in functions_test.go.
#include "isa.h"

	.text
	.balign 16

FUNC _start
	CALL sized
	CALL .Lhidden
	TRAP
END _start
	.balign 16

// Two names for one function, and a label inside.
FUNC sized
	.weak sized_alias
	.set sized_alias, sized
	.type sized_alias, %function
	nop
	nop
label_inside:
	nop
	RET
END sized
	.balign 16

// No size: it reaches to the next symbol.
	.globl unsized
unsized:
	nop
	nop
	RET
	.balign 16

// A function within another; both go on to the outer one's end.
FUNC outer
	nop
	.globl inner
	.type inner, %function
inner:
	nop
	nop
	.size inner, . - inner
	nop
	RET
END outer
	.balign 16

// An object in text.
	.globl table
	.type table, %object
table:
	.quad 0x1122334455667788, 0x99aabbccddeeff00
	.size table, . - table

// No symbol, but unwinding information tells of it.
	.balign 16
.Lhidden:
	.cfi_startproc
	nop
	RET
	.cfi_endproc
	.balign 16

FUNC last, local
	nop
	RET
END last

	.section .text.other, "ax"
	.balign 16
FUNC elsewhere
#if defined(__powerpc64__) && _CALL_ELF == 2
	addis 2, 12, .TOC. - elsewhere@ha
	addi 2, 2, .TOC. - elsewhere@l
	.localentry elsewhere, . - elsewhere
#endif
	nop
	RET
END elsewhere

	.section .note.GNU-stack, "", %progbits
