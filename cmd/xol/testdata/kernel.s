# What a Linux kernel has and a program has not: ftrace sites, jump labels,
# static calls, an exception table, a blacklist, alternatives, init text.


	.text
	.globl	_text, _stext
_text:
_stext:
	nop
	.p2align 4

	.globl	__fentry__
	.type	__fentry__, @function
__fentry__:
	ret
	.size	__fentry__, . - __fentry__

	.globl	vfs_read
	.type	vfs_read, @function
vfs_read:
	endbr64
.Lfentry:
	call	__fentry__
	push	%r15
.Llabel:
	.byte	0x0f, 0x1f, 0x44, 0x00, 0x00
.Lload:
	mov	(%rdi), %rax
.Lstatic:
	call	vfs_write
.Laltinstr:
	lfence
.Lbug:
	ud2
.Lout:
	pop	%r15
	ret
	.size	vfs_read, . - vfs_read

	.globl	vfs_write
	.type	vfs_write, @function
vfs_write:
	endbr64
	int3
	loop	vfs_write
	ret	$8
	.size	vfs_write, . - vfs_write

	.globl	forbidden
	.type	forbidden, @function
forbidden:
	nop
	ret
	.size	forbidden, . - forbidden

	.globl	_etext
_etext:

	.section .init.text, "ax"
	.globl	_sinittext, start_kernel
	.type	start_kernel, @function
_sinittext:
start_kernel:
	xor	%eax, %eax
	ret
	.size	start_kernel, . - start_kernel
	.globl	_einittext
_einittext:

	.section .altinstr_replacement, "ax"
.Lreplacement:
	mfence

	.section __mcount_loc, "a"
	.globl	__start_mcount_loc, __stop_mcount_loc
__start_mcount_loc:
	.quad	.Lfentry
__stop_mcount_loc:

	.section __jump_table, "a"
	.globl	__start___jump_table, __stop___jump_table
__start___jump_table:
	.long	.Llabel - ., .Lout - .
	.quad	0
__stop___jump_table:

	.section .static_call_sites, "a"
	.globl	__start_static_call_sites, __stop_static_call_sites
__start_static_call_sites:
	.long	.Lstatic - ., 0
__stop_static_call_sites:

	.section __ex_table, "a"
	.globl	__start___ex_table, __stop___ex_table
__start___ex_table:
	.long	.Lload - ., .Lout - ., 1
__stop___ex_table:

	.section __bug_table, "a"
	.globl	__start___bug_table, __stop___bug_table
__start___bug_table:
	.long	.Lbug - ., 0
	.short	1, 0
__stop___bug_table:

	.section .altinstructions, "a"
	.globl	__alt_instructions, __alt_instructions_end
__alt_instructions:
	.long	.Laltinstr - ., .Lreplacement - ., 0
	.byte	3, 3
__alt_instructions_end:

	.section _kprobe_blacklist, "a"
	.globl	__start_kprobe_blacklist, __stop_kprobe_blacklist
__start_kprobe_blacklist:
	.quad	forbidden
__stop_kprobe_blacklist:
