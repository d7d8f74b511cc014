// Relocations of all sorts. relocs.*.linked is what ld makes of relocs.*.o with
// the sections where package image lays them; it is the judge.
#include "isa.h"

	.text
	.balign 16
	.globl code
	.type code, %function
code:
#if defined(__x86_64__)
	call external_code
	call other
	jmp other
	je external_code
	jmp 1f
	.reloc . - 4, R_X86_64_PC32, other - 4
1:	mov external_data(%rip), %rax
	mov data + 8(%rip), %rax
	movl $1, data + 8(%rip)
	mov $data, %rax
	movabs $data, %rax
	movabs $external_data, %rax
	mov data, %eax
	lea data(,%rcx,8), %rdx
	push $data
	mov data16, %ax
	movb $1, data(%rip)
	movabs $data - ., %rcx
#elif defined(__aarch64__)
	bl external_code
	b other
	b.ne other
	cbz x0, other
	tbz x0, #1, other
	ldr x1, data
	adr x1, data
	adrp x2, external_data
	add x2, x2, :lo12:external_data
	ldrb w3, [x2, :lo12:data + 3]
	ldrh w3, [x2, :lo12:data + 2]
	ldr w3, [x2, :lo12:data + 4]
	ldr x3, [x2, :lo12:data + 8]
	ldr q3, [x2, :lo12:data + 16]
	movz x4, #:abs_g3:data
	movk x4, #:abs_g2_nc:data
	movk x4, #:abs_g1_nc:data
	movk x4, #:abs_g0_nc:data
	.word external_data - .
	.xword external_data - .
	.xword data
	.word data
#elif defined(__powerpc64__)
	bl external_code
	nop
	bl other
	nop
	b other
	beq other
	addis 3, 2, data@toc@ha
	addi 3, 3, data@toc@l
	ld 4, data@toc@l(3)
	lis 5, data@highest
	ori 5, 5, data@higher
	lis 5, data@ha
	addi 5, 5, data@l
	ld 5, data@l(5)
	lis 6, external_data@ha
	lwz 6, external_data@l(6)
	addis 7, 12, external_data - code@ha
	addi 7, 7, external_data - code@l
	.quad data
	.quad external_data - .
	.long external_data - .
	.quad .TOC. - .
# if _CALL_ELF == 2
	.machine power10
	.balign 64
	pld 3, data@pcrel(0), 1
	paddi 4, 0, external_data@pcrel, 1
	bl code@notoc
# else
	.quad .TOC.@tocbase
# endif
#endif
	RET
	.org code + 0x200
	.size code, . - code

	.section .init.text, "ax"
	.balign 16
	.globl other
	.type other, %function
other:
#if defined(__powerpc64__) && _CALL_ELF == 2
	addis 3, 12, .TOC. - other@ha
	addi 3, 3, .TOC. - other@l
	.localentry other, . - other
#endif
	CALL code
	RET
	.org other + 0x100
	.size other, . - other

	.data
	.balign 16
data:
	.quad code, other + 4, external_data
#if defined(__powerpc64__)
	.long code - ., external_code - .
#else
	.long code - ., external_code - ., code, external_code
	.short data16
#endif
	.org data + 0x100

	.set data16, 0x1234

#if defined(__powerpc64__)
	.section .toc, "aw"
	.balign 256
	.quad data, external_data
#endif

	.section .note.GNU-stack, "", %progbits
