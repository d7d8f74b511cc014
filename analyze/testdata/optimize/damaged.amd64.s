# A program whose language-specific data cannot be understood.

	.text
	.globl	plain
	.type	plain, @function
plain:
	.cfi_startproc
	.cfi_personality 0x1b, personality
	.cfi_lsda 0x1b, .Lhandlers
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	mov	$7, %eax		# 4
	pop	%rbx			# 9
	ret				# 10
	.cfi_endproc
	.size	plain, . - plain
	.balign	16, 0x90
	.type	personality, @function
personality:
	ret
	.size	personality, . - personality

	.section .gcc_except_table, "a"
.Lhandlers:
	.byte	0xff, 0xff, 0x01
	.uleb128 100			# more bytes of call sites than there are
	.uleb128 0, 4, 9, 0
