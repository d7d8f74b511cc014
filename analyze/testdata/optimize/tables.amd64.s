# A kernel whose tables name places where nothing can be.

	.macro begin name
	.balign	16, 0x90
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
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end plain

# The site starts inside the first instruction.
begin label_middle
	mov	$7, %eax		# 0
	mov	$8, %eax		# 5
	mov	$9, %eax		# 10
	ret				# 15
end label_middle

# The target is inside an instruction.
begin target_middle
	mov	$7, %eax		# 0
	mov	$8, %eax		# 5
	ret				# 10
end target_middle

# The range goes on over the next function.
begin alternative_long
	mov	$7, %eax		# 0
	ret				# 5
end alternative_long
begin alternative_next
	mov	$7, %eax		# 0
	ret				# 5
end alternative_next
	.skip	256, 0x90
begin behind
	mov	$7, %eax		# 0
	ret				# 5
end behind

	.globl	_etext
_etext:

	.section .init.text, "ax"
	.globl	start_kernel
start_kernel:
	ret

	.data
	.balign	8
data:
	.quad	0

	.section __jump_table, "a"
	.globl	__start___jump_table, __stop___jump_table
__start___jump_table:
	.long	label_middle + 2 - ., target_middle + 7 - .
	.quad	0
	.long	data - ., data - .
	.quad	0
	.long	0x7fffffff, 0x80000000
	.quad	-1
	.long	1			# an entry that is cut off
__stop___jump_table:

	.section __ex_table, "a"
	.globl	__start___ex_table, __stop___ex_table
__start___ex_table:
	.long	data - ., data - ., 1
	.long	0x7fffffff, 0x7fffffff, -1
	.long	0, 0, 0
__stop___ex_table:

	.section .static_call_sites, "a"
	.globl	__start_static_call_sites, __stop_static_call_sites
__start_static_call_sites:
	.long	data - ., 0
	.long	-0x80000000, 0
__stop_static_call_sites:

	.section __mcount_loc, "a"
	.globl	__start_mcount_loc, __stop_mcount_loc
__start_mcount_loc:
	.quad	-1, 0, data, 0x8000000000000000
__stop_mcount_loc:

	.section .kcfi_traps, "a"
	.globl	__start___kcfi_traps, __stop___kcfi_traps
__start___kcfi_traps:
	.long	data - ., 0x7fffffff
__stop___kcfi_traps:

	.section __bug_table, "a"
	.globl	__start___bug_table, __stop___bug_table
__start___bug_table:
	.long	0x7fffffff, 0
	.short	1, 0, 7
__stop___bug_table:

	.section .altinstructions, "a"
	.globl	__alt_instructions, __alt_instructions_end
__alt_instructions:
	.long	alternative_long - ., data - ., 0
	.byte	255, 255
	.long	data - ., data - ., 0
	.byte	255, 255
__alt_instructions_end:
