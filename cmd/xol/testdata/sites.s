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

# What the kernel writes at boot: a call through pv_ops becomes a direct one, or
# what it would do; NOPs become vmcall on some CPUs; the jump to the return thunk
# becomes a return on some.
	.globl	booted
	.type	booted, @function
booted:
	push	%rbx
.Ldirect:
	call	*pv_ops(%rip)
.Lnative:
	call	*pv_ops(%rip)
.Lcpu:
	nopl	(%rax)
	mov	%rax, %rbx
	pop	%rbx
.Lreturn:
	jmp	__x86_return_thunk
	.size	booted, . - booted

	.globl	irq_enable
	.type	irq_enable, @function
irq_enable:
	sti
	ret
	.size	irq_enable, . - irq_enable

	.globl	__x86_return_thunk
	.type	__x86_return_thunk, @function
__x86_return_thunk:
	ret
	int3
	.size	__x86_return_thunk, . - __x86_return_thunk

	.globl	_etext
_etext:

	.data
	.globl	pv_ops
pv_ops:
	.quad	irq_enable

	.section .altinstr_replacement, "ax"
.Lcallbug:
	call	__x86_return_thunk
.Lsti:
	sti
.Lvmcall:
	vmcall

	.section .altinstructions, "a"
	.globl	__alt_instructions, __alt_instructions_end
# ALT site, replacement, feature, flags, lengths of both
	.macro ALT site, by, feature, flags, size, length
	.long	\site - ., \by - .
	.short	\feature, \flags
	.byte	\size, \length
	.endm
	.set	ALWAYS, 3*32+21
	.set	XENPV, 8*32+16
	.set	NOT, 1
	.set	CALL, 2
__alt_instructions:
	ALT	.Ldirect, .Lcallbug, ALWAYS, CALL, 6, 5
	ALT	.Lnative, .Lcallbug, ALWAYS, CALL, 6, 5
	ALT	.Lnative, .Lsti, XENPV, NOT, 6, 1
	ALT	.Lcpu, .Lvmcall, 100, 0, 3, 3
__alt_instructions_end:

	.section .return_sites, "a"
	.long	.Lreturn - .

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
