// The tables that Linux's build leaves in kernels and modules. Each site says
// with WANT what is to be found there. Linked with kernel.lds it is a kernel,
// unlinked a module.
#include "isa.h"

// place.Kind
#define BLACKLIST     0x1
#define ENTRY_TEXT    0x2
#define INIT_TEXT     0x4
#define OUTSIDE_TEXT  0x8000
#define JUMP_LABEL    0x8
#define JUMP_TARGET   0x10000
#define STATIC_CALL   0x10
#define BUG           0x20
#define FTRACE        0x40
#define EX_TABLE      0x80
#define EX_FIXUP      0x100
#define ALTERNATIVE   0x200
#define CFI_PREAMBLE  0x400
#define CFI_TRAP      0x800
#define DATA          0x1000

#if defined(__x86_64__)
# define SITE 5
#else
# define SITE 4
#endif

#ifdef KERNEL
# define WANT_KERNEL WANT
# define WANT_SINCE_KERNEL WANT_SINCE
# define SYMBOL(name) .globl name; name:
#else
.macro WANT_KERNEL kind, addr, len
.endm
.macro WANT_SINCE_KERNEL kind, addr
.endm
# define SYMBOL(name)
#endif

	.section .modinfo, "a"
	.asciz "license=BSD"

	.text
	.balign 16
SYMBOL(_text)
SYMBOL(_stext)
SYMBOL(__entry_text_start)
FUNC enter
	nop
	RET
END enter
	.balign 16
SYMBOL(__entry_text_end)
SYMBOL(__head_end)
	WANT_SINCE_KERNEL BLACKLIST, .Lenter_start
#if defined(__x86_64__)
	WANT_SINCE_KERNEL ENTRY_TEXT, .Lenter_start
#endif

// An access that may fault.
FUNC faults
1:	nop
	nop
2:	nop
	RET
END faults
	.pushsection __ex_table, "a"
	.balign 4
#if defined(__powerpc64__)
	.long 1b - ., 2b - .
#else
	.long 1b - ., 2b - ., 3
#endif
	.popsection
	WANT EX_TABLE, 1b, 1
	WANT EX_FIXUP, 2b, 1
	.balign 16

FUNC branches
	nop
#if defined(__x86_64__)
1:	.byte 0x66, 0x90
2:	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00
3:	jmp 4f
4:	.byte 0xe9, 0, 0, 0, 0
	WANT JUMP_LABEL, 1b, 2
	WANT JUMP_LABEL, 2b, 5
	WANT JUMP_LABEL, 3b, 2
	WANT JUMP_LABEL, 4b, 5
#else
1:	nop
2:	nop
3:	nop
4:	nop
	WANT JUMP_LABEL, 1b, 4
	WANT JUMP_LABEL, 2b, 4
	WANT JUMP_LABEL, 3b, 4
	WANT JUMP_LABEL, 4b, 4
#endif
	WANT JUMP_TARGET, 4b, 1
	RET
END branches
	.pushsection __jump_table, "aw"
	.balign 8
	.irp n, 3, 1, 4, 2
	.long \n\()b - ., 4b - .
	.quad 0
	.endr
	.popsection
	.balign 16

FUNC calls
	nop
1:	CALL branches
	RET
END calls
	.pushsection .static_call_sites, "a"
	.long 1b - ., 1
	.popsection
	WANT STATIC_CALL, 1b, SITE
	.balign 16

FUNC bugs
	nop
1:	BUG_INSN
	RET
2:	BUG_INSN
3:	BUG_INSN
END bugs
	.pushsection __bug_table, "aw"
	.irp n, 1, 2, 3
#ifdef VERBOSE_BUG
	.long \n\()b - ., 0
	.short 123, 0
#else
	.long \n\()b - .
	.short 0, 0
#endif
	.endr
	.popsection
	WANT BUG, 1b, BUG_LEN
	WANT BUG, 2b, BUG_LEN
	WANT BUG, 3b, BUG_LEN
	.balign 16

#if defined(__x86_64__)
// An entry in the file, as gcc -mfentry -mrecord-mcount makes it.
FUNC __pfx_traced
	nop
	nop
	nop
	nop
END __pfx_traced
	WANT CFI_PREAMBLE, __pfx_traced, 4
FUNC traced
	endbr64
1:	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00
	RET
END traced
	.pushsection __mcount_loc, "a"
	.quad 1b
	.popsection
	WANT FTRACE, 1b, 5
#elif defined(__aarch64__)
// Two NOPs, as with -fpatchable-function-entry=2.
FUNC traced
1:	nop
2:	nop
	RET
END traced
	WANT FTRACE, 2b, 4
// Two NOPs before the function and two in it, without and with BTI.
3:	nop
	nop
FUNC traced_ops
	nop
4:	nop
	RET
END traced_ops
	WANT FTRACE, 4b, 4
5:	nop
	nop
FUNC traced_bti
	hint #34
	nop
6:	nop
	RET
END traced_bti
	WANT FTRACE, 6b, 4
	.pushsection __patchable_function_entries, "aw"
	.balign 8
	.quad 1b, 3b, 5b
	.popsection
#else
// A call, as with -mprofile-kernel, and two NOPs.
FUNC traced
	mflr 0
1:	bl .Lmcount
	RET
END traced
	WANT FTRACE, 1b, 4
FUNC traced_nops
2:	nop
3:	nop
	RET
END traced_nops
	WANT FTRACE, 3b, 4
.Lmcount:
	.pushsection __patchable_function_entries, "aw"
	.balign 8
	.quad 1b, 2b
	.popsection
#endif
	.balign 16

// What the kernel may change when it boots.
FUNC patched
	nop
1:	nop
	nop
2:	RET
END patched
#if defined(__x86_64__)
	.pushsection .altinstructions, "a"
	.long 1b - ., 3f - .
	.long 0
	.byte 2b - 1b, 0
	.popsection
	.pushsection .altinstr_replacement, "ax"
3:	.byte 0x90
	.popsection
	WANT_KERNEL INIT_TEXT, 3b, 1
#elif defined(__aarch64__)
	.pushsection .altinstructions, "a"
	.long 1b - ., 2b - .
	.short 0
	.byte 2b - 1b, 4
	.popsection
#else
	.pushsection __ftr_fixup, "a"
	.balign 8
3:	.quad 1, 1, 1b - 3b, 2b - 3b, 0, 0
	.popsection
	.pushsection __lwsync_fixup, "a"
	.balign 8
4:	.quad 5f - 4b
	.popsection
5:	lwsync
	WANT ALTERNATIVE, 5b, 4
#endif
	WANT ALTERNATIVE, 1b, 2b-1b
	.balign 16

// A pointer blacklists the whole function, to the next one. The part that was
// split off follows it.
FUNC forbidden, local
	nop
	RET
END forbidden
	.balign 16
FUNC behind
	nop
	RET
END behind
	WANT BLACKLIST, .Lforbidden_start, .Lbehind_start-.Lforbidden_start
	.pushsection _kprobe_blacklist, "aw"
	.balign 8
	.quad forbidden
	.popsection
	.balign 16
FUNC forbidden.part.0, local
	nop
	RET
END forbidden.part.0
	.balign 16
FUNC end_of_part
	RET
END end_of_part
	WANT BLACKLIST, .Lforbidden.part.0_start, .Lend_of_part_start-.Lforbidden.part.0_start

#if defined(__aarch64__)
1:	.quad 0x1234
	WANT DATA, 1b, 8
#endif
	.balign 16

	.section .noinstr.text, "ax"
	.balign 16
SYMBOL(__noinstr_text_start)
FUNC quiet
	nop
	RET
END quiet
	.balign 4
SYMBOL(__noinstr_text_end)
	WANT_SINCE BLACKLIST, .Lquiet_start

	.section .init.text, "ax"
	.balign 16
SYMBOL(_sinittext)
FUNC setup
	nop
	RET
END setup
	.balign 4
SYMBOL(_einittext)
	WANT_SINCE INIT_TEXT, .Lsetup_start

#ifdef KERNEL
	.section .exit.text, "ax"
	.balign 16
FUNC teardown
	nop
	RET
END teardown
	.balign 4
	WANT_SINCE INIT_TEXT, .Lteardown_start

	.section .outside.text, "ax"
	.balign 16
FUNC outside
	nop
	RET
END outside
	.balign 4
	WANT_SINCE OUTSIDE_TEXT, .Loutside_start
#endif

	.section .note.GNU-stack, "", %progbits
