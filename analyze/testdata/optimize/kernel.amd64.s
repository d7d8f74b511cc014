# What a Linux kernel has and a program has not. Linux counts a function up to
# the next symbol; all padding is NOPs of one byte. Local labels are no symbols.

	.macro begin name
	.balign	16, 0x90
	.type	\name, @function
\name:
	.endm

	.macro tight name
	.type	\name, @function
\name:
	.endm

	.macro nop5
	.byte	0x0f, 0x1f, 0x44, 0, 0
	.endm

	.macro end name
	.size	\name, . - \name
	.endm

	.text
	.globl	_text, _stext
_text:
_stext:
	nop

begin __fentry__
	ret
end __fentry__

begin plain
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret			# 5
end plain

# As long as a jump, and shorter by a byte.
begin exact
	xor	%eax, %eax		# 0
	xor	%edx, %edx		# 2
	ret			# 4
end exact
tight short
	xor	%eax, %eax		# 0
	pop	%rbp			# 2
	ret			# 3
end short
tight behind_short
	ret			# 0
end behind_short

begin entry
	endbr64			# 0
.Lentry_site:
	call	__fentry__		# 4
	push	%r15			# 9
	mov	%rsp, %rbp		# 11
	pop	%r15			# 14
	ret			# 16
end entry

# A function whose ENDBR no indirect call needs starts with another NOP.
begin sealed
	nopw	(%rax)			# 0
	mov	$7, %eax		# 4
	ret			# 9
end sealed

begin ftrace
	nop			# 0
.Lftrace_site:
	call	__fentry__		# 1
	push	%rbx			# 6
	pop	%rbx			# 7
	ret			# 8
end ftrace

begin jump_label
	push	%rbx			# 0
.Llabel_site:
	nop5			# 1
.Llabel_target:
	pop	%rbx			# 6
	ret			# 7
end jump_label
begin jump_label_behind
	mov	$7, %eax		# 0
.Llabel_behind_site:
	nop5			# 5
.Llabel_behind_target:
	ret			# 10
end jump_label_behind
begin jump_label_target
.Llabel_jumps:
	nop5			# 0
	push	%rbx			# 5
.Llabel_inside:
	mov	%rdi, %rbx		# 6
	pop	%rbx			# 9
	ret			# 10
end jump_label_target

# A static call without a function is a NOP.
begin static_call
	push	%rbx			# 0
.Lstatic_nop:
	nop5			# 1
	pop	%rbx			# 6
	ret			# 7
end static_call
begin static_call_called
	push	%rbx			# 0
.Lstatic_call:
	call	plain			# 1
	pop	%rbx			# 6
	ret			# 7
end static_call_called

begin alternative
	push	%rbx			# 0
.Laltinstr:
	nop			# 1
	nop			# 2
	nop			# 3
	pop	%rbx			# 4
	ret			# 5
end alternative
# The replacement of the above jumps to the offset 1.
begin alternative_target
	push	%rbx			# 0
.Lreplaced_to:
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret			# 5
end alternative_target

begin bug
	push	%rbx			# 0
.Lbug:
	ud2			# 1
	mov	$7, %eax		# 3
	ret			# 8
end bug

begin exception
	push	%rbx			# 0
.Lload:
	mov	(%rdi), %rax		# 1
	pop	%rbx			# 4
	push	%rax			# 5
.Lfixup:
	mov	%rdi, %rax		# 6
	pop	%rcx			# 9
	ret			# 10
end exception

begin cfi
	push	%rbx			# 0
.Lcfi_trap:
	ud2			# 1
	mov	$7, %eax		# 3
	ret			# 8
end cfi

# vfmaddps of FMA4, which the kernel's decoder does not know.
begin undecodable
	mov	$7, %eax		# 0
	.byte	0xc4, 0xe3, 0xe9, 0x68, 0xd9, 0	# 5
	mov	$7, %eax		# 11
	ret			# 16
end undecodable

begin indirect
	mov	$7, %eax		# 0
	jmp	*%rax			# 5
end indirect

begin halt
	sti			# 0
	hlt			# 1
	mov	%rdi, %rax		# 2
	ret			# 5
end halt
begin halt_last
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	hlt			# 4
	ret			# 5
end halt_last

# The kernel also minds a branch to what follows the jump.
begin target_behind
	mov	$7, %eax		# 0
1:	dec	%eax			# 5
	jnz	1b			# 7
	ret			# 9
end target_behind
begin target_beyond
	mov	%rdi, %rax		# 0
	mov	%rax, %rdi		# 3
1:	dec	%eax			# 6
	jnz	1b			# 8
	ret			# 10
end target_beyond
begin target_inside
	mov	%rdi, %rax		# 0
1:	mov	%rax, %rdi		# 3
	dec	%eax			# 6
	jnz	1b			# 8
	ret			# 10
end target_inside

# Others' branches the kernel does not see.
begin entered
	push	%rbx			# 0
.Lentered:
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret			# 5
end entered
begin enters
	jmp	.Lentered		# 0
end enters

begin not_boostable
	mov	%edi, %eax		# 0
	jz	1f			# 2
	mov	$7, %eax		# 4
	nop			# 9
1:	ret			# 10
end not_boostable

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
	nop
replacement_jump:
	jmp	.Lreplaced_to

	.section __mcount_loc, "a"
	.globl	__start_mcount_loc, __stop_mcount_loc
__start_mcount_loc:
	.quad	.Lentry_site, .Lftrace_site
__stop_mcount_loc:

	.section __jump_table, "a"
	.globl	__start___jump_table, __stop___jump_table
__start___jump_table:
	.long	.Llabel_site - ., .Llabel_target - .
	.quad	0
	.long	.Llabel_behind_site - ., .Llabel_behind_target - .
	.quad	0
	.long	.Llabel_jumps - ., .Llabel_inside - .
	.quad	0
__stop___jump_table:

	.section .static_call_sites, "a"
	.globl	__start_static_call_sites, __stop_static_call_sites
__start_static_call_sites:
	.long	.Lstatic_nop - ., 0
	.long	.Lstatic_call - ., 0
__stop_static_call_sites:

	.section __ex_table, "a"
	.globl	__start___ex_table, __stop___ex_table
__start___ex_table:
	.long	.Lload - ., .Lfixup - ., 1
__stop___ex_table:

	.section __bug_table, "a"
	.globl	__start___bug_table, __stop___bug_table
__start___bug_table:
	.long	.Lbug - ., 0
	.short	1, 0
__stop___bug_table:

	.section .kcfi_traps, "a"
	.globl	__start___kcfi_traps, __stop___kcfi_traps
__start___kcfi_traps:
	.long	.Lcfi_trap - .
__stop___kcfi_traps:

	.section .altinstructions, "a"
	.globl	__alt_instructions, __alt_instructions_end
__alt_instructions:
	.long	.Laltinstr - ., .Lreplacement - ., 0
	.byte	3, 3
__alt_instructions_end:
