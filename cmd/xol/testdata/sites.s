# A Linux kernel whose sites stand in each other's way.

	.text
	.globl	_text, _stext
_text:
_stext:
	nop
	.p2align 4

	.globl	two_labels
	.type	two_labels, @function
two_labels:
.Lfirst:
	.byte	0x0f, 0x1f, 0x44, 0x00, 0x00
.Lsecond:
	.byte	0x0f, 0x1f, 0x44, 0x00, 0x00
	int3
	nop
.Lout:
	ret
	.size	two_labels, . - two_labels

	.globl	push_before_call
	.type	push_before_call, @function
push_before_call:
	push	%rbx
	call	push_before_call
	pop	%rbx
	ret
	.size	push_before_call, . - push_before_call

	.globl	landed
	.type	landed, @function
landed:
	mov	%rdi, %rax
	push	%rbx
	pop	%rbx
.Lloop:
	dec	%rax
	jne	.Lloop
	ret
	.size	landed, . - landed

	.globl	trap_at_entry
	.type	trap_at_entry, @function
trap_at_entry:
	endbr64
	int3
	ret
	.size	trap_at_entry, . - trap_at_entry

	.globl	_etext
_etext:

	.section .init.text, "ax"
	.globl	start_kernel
	.type	start_kernel, @function
start_kernel:
	ret
	.size	start_kernel, . - start_kernel

	.section __jump_table, "a"
	.globl	__start___jump_table, __stop___jump_table
__start___jump_table:
	.long	.Lfirst - ., .Lout - .
	.quad	0
	.long	.Lsecond - ., .Lout - .
	.quad	0
__stop___jump_table:

	.section __ex_table, "a"
	.globl	__start___ex_table, __stop___ex_table
__start___ex_table:
	.long	.Lout - ., .Lout - ., 1
__stop___ex_table:
