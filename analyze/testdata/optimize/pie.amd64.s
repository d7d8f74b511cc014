# A program that can stand anywhere: its pointers are relocations. It is also
# linked without symbols, where the functions come from the unwind table.

	.macro begin name
	.balign	16, 0x90
	.type	\name, @function
\name:
	.cfi_startproc
	.endm

	.macro end name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.text
	.globl	start
begin start
	mov	$60, %eax		# 0
	syscall				# 5
	ret				# 7
end start

begin pointed
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end pointed
begin pointed_behind
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end pointed_behind
begin initializer
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end initializer

begin taken
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end taken
begin taker
	lea	taken + 1(%rip), %rax	# 0
	ret				# 7
end taker

# In a file that can stand anywhere, this is a number. It is where the linker
# puts the function's second instruction.
begin number
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end number
begin number_user
	mov	$0x1061, %edi		# 0
	ret				# 5
end number_user

begin entered
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end entered
begin enters
	jmp	entered + 1		# 0
end enters

# Only the symbol tells of the offset 1.
begin symbol_inside
	push	%rbx			# 0
symbol_label:
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end symbol_inside

begin switch_relative
	cmp	$2, %edi		# 0
	ja	3f			# 3
	lea	table_relative(%rip), %rdx	# 5
	mov	%edi, %edi		# 12
	movslq	(%rdx, %rdi, 4), %rax	# 14
	add	%rdx, %rax		# 18
	notrack jmp *%rax		# 21
.Lrelative_0:
	xor	%eax, %eax		# 24
.Lrelative_1:
	inc	%eax			# 26
.Lrelative_2:
	mov	$7, %eax		# 28
3:	ret				# 33
end switch_relative

	.section .rodata
	.p2align 2
table_relative:
	.long	.Lrelative_0 - table_relative, .Lrelative_1 - table_relative, .Lrelative_2 - table_relative

	.data
	.p2align 3
pointer_inside:
	.quad	pointed + 1
pointer_behind:
	.quad	pointed_behind + 5

	.section .init_array, "aw"
	.p2align 3
pointer_init:
	.quad	initializer + 1
