# What a Linux kernel has and a program has not.

	.macro begin name
	.p2align 4
	.type	\name, %function
\name:
	.endm

	.macro end name
	.size	\name, . - \name
	.endm

	.text
	.globl	_text, _stext
_text:
_stext:
	nop

begin plain
	mov	w0, #7			// 0
	ret				// 4
end plain

begin ftrace
	mov	x9, x30			// 0
.Lsite:
	nop				// 4
	ret				// 8
end ftrace

begin jump_label
	mov	w0, #7			// 0
.Llabel:
	nop				// 4
.Llabel_target:
	ret				// 8
end jump_label

begin alternative
	nop				// 0
.Laltinstr:
	mov	x0, x1			// 4
	nop				// 8
.Laltinstr_end:
	mov	x0, x1			// 12
	ret				// 16
end alternative

begin exception
	nop				// 0
.Lload:
	ldr	x0, [x1]		// 4
.Lfixup:
	ret				// 8
end exception

# The second entry of the table names no brk.
begin bug
.Lbug:
	brk	#0x800			// 0
.Lbug_nop:
	nop				// 4
	ret				// 8
end bug

	.globl	_etext
_etext:

	.section .init.text, "ax"
	.globl	_sinittext, start_kernel
_sinittext:
start_kernel:
	ret
	.globl	_einittext
_einittext:

	.section .altinstr_replacement, "ax"
.Lreplacement:
	mov	x0, x2
	nop

	.section __mcount_loc, "a"
	.globl	__start_mcount_loc, __stop_mcount_loc
__start_mcount_loc:
	.quad	.Lsite
__stop_mcount_loc:

	.section __jump_table, "a"
	.globl	__start___jump_table, __stop___jump_table
__start___jump_table:
	.long	.Llabel - ., .Llabel_target - .
	.quad	0
__stop___jump_table:

	.section __ex_table, "a"
	.globl	__start___ex_table, __stop___ex_table
__start___ex_table:
	.long	.Lload - ., .Lfixup - .
	.short	0, 0
__stop___ex_table:

	.section __bug_table, "a"
	.globl	__start___bug_table, __stop___bug_table
__start___bug_table:
	.long	.Lbug - ., 0
	.short	1, 0
	.long	.Lbug_nop - ., 0
	.short	1, 0
__stop___bug_table:

	.section .altinstructions, "a"
	.globl	__alt_instructions, __alt_instructions_end
__alt_instructions:
	.long	.Laltinstr - ., .Lreplacement - .
	.short	0
	.byte	.Laltinstr_end - .Laltinstr, 8
__alt_instructions_end:
