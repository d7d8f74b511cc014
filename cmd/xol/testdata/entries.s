# A Linux kernel for ppc64le: functions with two entries, with and without a site
# of ftrace.

	.abiversion 2
	.text
	.globl	_text, _stext
_text:
_stext:
	nop

	.globl	_mcount
	.type	_mcount, @function
_mcount:
	blr
	.size	_mcount, . - _mcount

	.macro	ENTRIES name
	.globl	\name
	.type	\name, @function
\name:
	addis	2, 12, .TOC. - \name@ha
	addi	2, 2, .TOC. - \name@l
	.localentry \name, . - \name
	.endm

	ENTRIES	traced
	mflr	0
.Lsite:
	bl	_mcount
	li	3, 0
	blr
	.size	traced, . - traced

	ENTRIES	untraced
	li	3, 0
	blr
	.size	untraced, . - untraced

	ENTRIES	forbidden
	trap
	blr
	.size	forbidden, . - forbidden

	.globl	one_entry
	.type	one_entry, @function
one_entry:
	mflr	0
.Lother:
	bl	_mcount
	blr
	.size	one_entry, . - one_entry

	.globl	_etext
_etext:

	.section .init.text, "ax"
	.globl	start_kernel
	.type	start_kernel, @function
start_kernel:
	blr
	.size	start_kernel, . - start_kernel

	.section __ex_table, "a"
	.globl	__start___ex_table, __stop___ex_table
__start___ex_table:
	.long	start_kernel - ., start_kernel - .
__stop___ex_table:

	.section __mcount_loc, "a"
	.globl	__start_mcount_loc, __stop_mcount_loc
__start_mcount_loc:
	.quad	.Lsite, .Lother
__stop_mcount_loc:
