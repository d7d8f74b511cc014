# What a Linux kernel has and a program has not. Where a table names the second
# word of a prefixed instruction, that word is patched.

	.abiversion 2
	.machine power10

	.macro begin name
	.balign	16
	.type	\name, @function
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
	li	%r3, 7			# 0
	add	%r3, %r4, %r5		# 4
	b	plain			# 8
	bl	plain			# 12
	mflr	%r0			# 16
	blr				# 20
end plain

begin conditional
	beq	conditional		# 0
	bdnz	conditional		# 4
	bctr				# 8
	bcl	20, 31, conditional	# 12
	blr				# 16
end conditional

begin memory
	ld	%r3, 0(%r4)		# 0
	std	%r3, 0(%r4)		# 4
	dcbz	0, %r4			# 8
	lfd	%f1, 0(%r4)		# 12
	blr				# 16
end memory

begin state
	mfmsr	%r3			# 0
	fadd	%f1, %f2, %f3		# 4
	isync				# 8
	blr				# 12
end state

begin ftrace
	mflr	%r0			# 0
.Lsite:
	nop				# 4
	blr				# 8
end ftrace
begin ftrace_suffix
	pli	%r3, 7			# 0
	blr				# 8
end ftrace_suffix

begin jump_label
	li	%r3, 7			# 0
.Llabel:
	nop				# 4
.Llabel_target:
	blr				# 8
end jump_label
begin jump_label_suffix
	pli	%r3, 7			# 0
	blr				# 8
end jump_label_suffix
begin jump_label_target
.Llabel_jumps:
	nop				# 0
	nop				# 4
	pli	%r3, 7			# 8
	blr				# 16
end jump_label_target

begin static_call_suffix
	pli	%r3, 7			# 0
	blr				# 8
end static_call_suffix

begin alternative
	nop				# 0
.Lfeature:
	li	%r3, 7			# 4
	nop				# 8
.Lfeature_end:
	li	%r3, 7			# 12
	blr				# 16
end alternative

begin exception
	nop				# 0
.Lload:
	ld	%r3, 0(%r4)		# 4
	pli	%r3, 7			# 8
	blr				# 16
end exception
begin exception_behind
	nop				# 0
.Lload_behind:
	ld	%r3, 0(%r4)		# 4
	pli	%r3, 7			# 8
.Lfixup_behind:
	blr				# 16
end exception_behind

begin bug
	nop				# 0
.Lbug:
	trap				# 4
	blr				# 8
end bug

	.globl	_etext
_etext:

	.section .init.text, "ax"
	.globl	_sinittext, start_kernel
_sinittext:
start_kernel:
	blr
	.globl	_einittext
_einittext:

	.section __ftr_alt, "ax"
.Lreplacement:
	li	%r3, 8
	nop
.Lreplacement_end:

	.section __mcount_loc, "a"
	.globl	__start_mcount_loc, __stop_mcount_loc
__start_mcount_loc:
	.quad	.Lsite, ftrace_suffix + 4
__stop_mcount_loc:

	.section __jump_table, "a"
	.globl	__start___jump_table, __stop___jump_table
__start___jump_table:
	.long	.Llabel - ., .Llabel_target - .
	.quad	0
	.long	jump_label_suffix + 4 - ., .Llabel_target - .
	.quad	0
	.long	.Llabel_jumps - ., jump_label_target + 12 - .
	.quad	0
__stop___jump_table:

	.section .static_call_sites, "a"
	.globl	__start_static_call_sites, __stop_static_call_sites
__start_static_call_sites:
	.long	static_call_suffix + 4 - ., 0
__stop_static_call_sites:

	.section __ex_table, "a"
	.globl	__start___ex_table, __stop___ex_table
__start___ex_table:
	.long	.Lload - ., exception + 12 - .
	.long	.Lload_behind - ., .Lfixup_behind - .
__stop___ex_table:

	.section __bug_table, "a"
	.globl	__start___bug_table, __stop___bug_table
__start___bug_table:
	.long	.Lbug - ., 0
	.short	1, 0
__stop___bug_table:

	.section __ftr_fixup, "a"
	.globl	__start___ftr_fixup, __stop___ftr_fixup
__start___ftr_fixup:
	.quad	1, 1
	.quad	.Lfeature - __start___ftr_fixup, .Lfeature_end - __start___ftr_fixup
	.quad	.Lreplacement - __start___ftr_fixup, .Lreplacement_end - __start___ftr_fixup
__stop___ftr_fixup:
