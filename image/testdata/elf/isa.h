// What the fixtures need of each ISA.

#if defined(__x86_64__)
# define RET ret
# define CALL call
# define TRAP int3
# define BUG_INSN ud2
# define BUG_LEN 2
#elif defined(__aarch64__)
# define RET ret
# define CALL bl
# define TRAP brk #1
# define BUG_INSN brk #0x800
# define BUG_LEN 4
#elif defined(__powerpc64__)
# define RET blr
# define CALL bl
# define TRAP trap
# define BUG_INSN trap
# define BUG_LEN 4
#endif

// FUNC opens a function, whose code starts at .Lname_start, END closes it.
// With ELFv1 the name is that of its descriptor.
#if defined(__powerpc64__) && _CALL_ELF != 2
.macro FUNC name, binding=globl
	.pushsection .opd, "aw"
	.balign 8
	.\binding \name
	.type \name, %function
\name:
	.quad .Lentry_\name, .TOC.@tocbase, 0
	.popsection
.Lentry_\name:
.L\name\()_start:
	.cfi_startproc
.endm
.macro END name
	.cfi_endproc
	.size \name, . - .Lentry_\name
.endm
#else
.macro FUNC name, binding=globl
	.\binding \name
	.type \name, %function
\name:
.L\name\()_start:
	.cfi_startproc
.endm
.macro END name
	.cfi_endproc
	.size \name, . - \name
.endm
#endif

// WANT records, for the tests, what is to be found in the file: a kind, an
// address and a length.
.macro WANT kind, addr, len
	.pushsection .want, "", %progbits
	.quad \kind, \addr, \len
	.popsection
.endm

// WANT_SINCE records what starts at an address and ends here.
.macro WANT_SINCE kind, addr
.Lhere\@:
	WANT \kind, \addr, .Lhere\@-\addr
.endm
