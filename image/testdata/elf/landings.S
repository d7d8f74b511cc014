// Data of every kind that leads into text, and data that does not. Each says
// with LANDS what is to be found. Assembled with
//   OBJECT  to be read unlinked, as a kernel module
//   FIXED   to be linked to where it stands, as a kernel
//   MOVED   to be linked to a shared object
#include "isa.h"

// place.LandingKind
#define ENTRY       3
#define LOCAL_ENTRY 5
#define POINTER     6
#define EX_FIXUP    8
#define JUMP_LABEL  10

// LANDS records a kind of landing, its address and where it comes from.
.macro LANDS kind, addr, from
	.pushsection .landings, "", %progbits
	.quad \kind, \addr, \from
	.popsection
.endm

// POINTS records what Pointer is to say of a word; 0 for nothing.
.macro POINTS from, addr
	.pushsection .pointers, "", %progbits
	.quad \from, \addr
	.popsection
.endm

// POINTER_AT is a word that leads into text.
.macro POINTER_AT from, addr
	LANDS POINTER, \addr, \from
	POINTS \from, \addr
.endm

// FUNCTION is a function whose descriptor, if it has one, leads to it.
.macro FUNCTION name
FUNC \name
#if defined(__powerpc64__) && _CALL_ELF != 2
	POINTER_AT \name, .L\name\()_start
#endif
.endm

#ifndef OBJECT
	LANDS ENTRY, .L_start_start, 0
#endif

	.text
	.balign 16
FUNCTION _start
	nop
.Linside:
	nop
	RET
END _start
	.balign 16

FUNCTION hidden
	nop
	nop
	RET
END hidden
	.hidden hidden
	.balign 16

#if defined(__powerpc64__) && _CALL_ELF == 2
FUNCTION with_local
	addis 2, 12, .TOC. - with_local@ha
	addi 2, 2, .TOC. - with_local@l
.Llocal:
	.localentry with_local, . - with_local
	RET
END with_local
	LANDS LOCAL_ENTRY, .Llocal, with_local
	.balign 16
#endif

// What a function chooses when the program is loaded. Where linkers make stubs
// of their own for that, it is left out.
#if defined(__x86_64__) && !defined(OBJECT) || defined(__powerpc64__) && _CALL_ELF == 2 && defined(MOVED)
	.globl chosen
	.type chosen, %gnu_indirect_function
chosen:
.Lchooser:
	nop
	RET
	.size chosen, . - chosen
	.data
	.balign 8
.Lchosen_word:
	.quad chosen
	LANDS POINTER, .Lchooser, .Lchosen_word
	POINTS .Lchosen_word, 0
	.text
	.balign 16
#endif

// An access that may fault, and a branch that is patched.
#if defined(OBJECT) || defined(FIXED)
FUNCTION faults
	nop
1:	nop
	nop
2:	RET
END faults
	.balign 16
	.pushsection __ex_table, "a"
	.balign 4
# if defined(__powerpc64__)
	.long 1b - ., 2b - .
# else
	.long 1b - ., 2b - ., 3
# endif
	.popsection
	LANDS EX_FIXUP, 2b, 1b

FUNCTION branches
	nop
1:	nop
	nop
	nop
	nop
2:	RET
END branches
	.balign 16
	.pushsection __jump_table, "aw"
	.balign 8
	.long 1b - ., 2b - .
	.quad 0
	.popsection
	LANDS JUMP_LABEL, 2b, 1b

// What only describes text.
	.pushsection __mcount_loc, "a"
	.balign 8
	.quad .Linside
	.popsection
	.pushsection .smp_locks, "a"
	.balign 8
	.quad .Linside
	.long .Linside - .
	.popsection

	.section .modinfo, "a"
	.asciz "license=BSD"
	.section .init.text, "ax"
	.balign 16
	RET
#endif

	.data
	.balign 16
data:
1:	.quad .Linside
	POINTER_AT 1b, .Linside
2:	.quad data
	POINTS 2b, data
3:	.quad 0x1234
	POINTS 3b, 0
	.quad -1
4:	.quad .Linside + 4
	POINTER_AT 4b, .Linside + 4
	.quad .Ltext_end
#if !(defined(__powerpc64__) && _CALL_ELF != 2)
5:	.quad hidden
	POINTER_AT 5b, hidden
#endif
	.byte 0
6:	.quad .Linside // not aligned
	POINTS 6b, .Linside
#ifndef FIXED
	LANDS POINTER, .Linside, 6b
#endif

	.section .init_array, "aw", %init_array
	.balign 8
1:	.quad .Linside
	POINTER_AT 1b, .Linside

#ifdef OBJECT
	.data
	.balign 8
1:	.long .Linside - .
	LANDS POINTER, .Linside, 1b
# if !defined(__powerpc64__)
2:	.long .Linside
	LANDS POINTER, .Linside, 2b
# endif
3:	.quad .Linside - .
	LANDS POINTER, .Linside, 3b
	POINTS 3b, 0
4:	.quad elsewhere
	POINTS 4b, 0
// A jump table's entries count from its start, not from where they are.
	.section .rodata, "a"
	.balign 8
table:
	.long .Linside - table, .Linside + 4 - table
#endif

#ifdef MOVED
	.data
	.balign 8
3:	.quad elsewhere
	POINTS 3b, 0
// A symbol that another file may define, too.
# if !(defined(__powerpc64__) && _CALL_ELF != 2)
1:	.quad _start
	POINTER_AT 1b, _start
# endif
#endif

// The end of the section is not aligned.
	.data
	.byte 0, 0, 0

	.section .text.last, "ax"
	.balign 16
FUNCTION last
	RET
END last
.Ltext_end:

	.section .note.GNU-stack, "", %progbits
